"""Where a compaction may cut: behind a whole model step, never inside one (semantics, 16.2).

A step is a reply with its calls and their results, so a cut behind a reply splits no call from its
result and no parallel batch. A turn with calls whose reply nobody recorded is passed as a whole
once it is closed, because it is not known where in it those calls stand. Pure; no query.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a session's history: behind the message at `position` of the turn `turn`.

    In a closed turn without messages the position is 0.
    """

    turn: int
    position: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply as a cut sees it."""

    position: int
    step: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as a cut sees it: its step, and whether it is unresolved."""

    id: UUID
    step: int
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSeen:
    """A turn as a cut sees it. `last` is the position of its last message, None without any."""

    number: int
    is_closed: bool
    last: int | None = None
    replies: Sequence[Reply] = ()
    asked: Sequence[Asked] = field(default=())


@dataclass(frozen=True, slots=True)
class Cut:
    """An allowed cut, and the unresolved calls before it: they live on in the carry-over alone."""

    place: Place
    passes: tuple[UUID, ...]


def allowed(turns: Sequence[TurnSeen], *, behind: Place | None = None) -> list[Cut]:
    """Every allowed cut in order; with `behind`, those that come after an earlier compaction's."""
    passed: tuple[UUID, ...] = ()
    found: list[Cut] = []
    for turn in sorted(turns, key=lambda each: each.number):
        found += [Cut(place, passed + calls) for place, calls in _within(turn)]
        passed += tuple(each.id for each in turn.asked if each.is_open)
    return [each for each in found if behind is None or each.place > behind]


def _within(turn: TurnSeen) -> Iterator[tuple[Place, tuple[UUID, ...]]]:
    end = turn.last or 0
    if not _has_stray_calls(turn):
        for reply in sorted(turn.replies, key=lambda each: each.position):
            if reply.position != end or not turn.is_closed:
                yield Place(turn.number, reply.position), _open_through(turn, reply)
    if turn.is_closed:
        yield Place(turn.number, end), tuple(each.id for each in turn.asked if each.is_open)


def _has_stray_calls(turn: TurnSeen) -> bool:
    steps = {reply.step for reply in turn.replies}
    return any(each.step not in steps for each in turn.asked)


def _open_through(turn: TurnSeen, reply: Reply) -> tuple[UUID, ...]:
    before: Mapping[int, int] = {each.step: each.position for each in turn.replies}
    return tuple(
        each.id
        for each in turn.asked
        if each.is_open and before.get(each.step, reply.position + 1) <= reply.position
    )


def at_or_before(cuts: Sequence[Cut], wanted: Place | None) -> Cut | None:
    """The last allowed cut that is not behind the wanted place; None if there is none."""
    within = [each for each in cuts if wanted is None or each.place <= wanted]
    return max(within, key=lambda each: each.place, default=None)
