"""Calls and results as one provider matches them: by place, not by what was meant.

The validator's own view, apart from `pairing`, which finds out what belongs together: the same
mistake in both would hide itself. Linear.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ledger.transcripts.neutral import Call, Entry, Result, Role
from ledger.transcripts.profiles import Profile, ResultsIn


@dataclass(slots=True, eq=False)
class Placed:
    """A call or a result with its entry and part; `number` counts only its kind in the entry."""

    at: int
    part: int
    number: int
    id: str
    item: Call | Result


@dataclass(slots=True)
class Stretch:
    """A reply with calls and the results that stand where its provider looks for them."""

    at: int
    calls: list[Placed]
    results: list[Placed] = field(default_factory=list)
    unknown: list[Placed] = field(default_factory=list)
    doubled: list[Placed] = field(default_factory=list)
    open_ids: dict[str, int] = field(default_factory=dict)
    ends_at: int = -1

    def unanswered(self) -> Iterator[Placed]:
        """The calls that no result answers: of equal ids the last ones."""
        if not any(self.open_ids.values()):
            return iter(())
        left = dict(self.open_ids)
        missing = []
        for call in reversed(self.calls):
            if left[call.id] > 0:
                left[call.id] -= 1
                missing.append(call)
        return reversed(missing)

    def take(self, result: Placed) -> None:
        """A result in this stretch: it answers a call, doubles an answer, or is unknown here."""
        self.results.append(result)
        self.ends_at = max(self.ends_at, result.at)
        if self.open_ids.get(result.id, 0) > 0:
            self.open_ids[result.id] -= 1
        elif result.id in self.open_ids:
            self.doubled.append(result)
        else:
            self.unknown.append(result)


def match(
    entries: Iterable[tuple[int, Entry]], profile: Profile
) -> tuple[list[Stretch], list[Placed]]:
    """The replies with calls, and the results that stand behind none."""
    if profile.results_in is ResultsIn.ITEMS:
        return _anywhere(entries)
    return _by_place(entries, together=profile.results_in is ResultsIn.TOGETHER)


def _by_place(
    entries: Iterable[tuple[int, Entry]], *, together: bool
) -> tuple[list[Stretch], list[Placed]]:
    steps: list[Stretch] = []
    strays: list[Placed] = []
    run: Stretch | None = None
    for at, entry in entries:
        results = placed(at, entry, Result)
        if entry.role is Role.ASSISTANT:
            strays += results
            run = _stretch(at, placed(at, entry, Call))
            steps += [run] if run else []
        elif run is not None and results:
            for result in results:
                run.take(result)
            run = None if together or len(entry.parts) > len(results) else run
        else:
            strays += results
            run = None
    return steps, strays


def _anywhere(entries: Iterable[tuple[int, Entry]]) -> tuple[list[Stretch], list[Placed]]:
    """Each output somewhere behind its call; every call is a stretch of its own."""
    steps: list[Stretch] = []
    strays: list[Placed] = []
    open_steps: defaultdict[str, deque[Stretch]] = defaultdict(deque)
    seen: dict[str, Stretch] = {}
    for at, entry in entries:
        for call in placed(at, entry, Call):
            steps += [step for step in (_stretch(at, [call]),) if step]
            open_steps[call.id].append(steps[-1])
            seen[call.id] = steps[-1]
        for result in placed(at, entry, Result):
            waiting = open_steps[result.id]
            owner = waiting.popleft() if waiting else seen.get(result.id)
            strays += [] if owner else [result]
            if owner:
                owner.take(result)
    return steps, strays


def _stretch(at: int, calls: Sequence[Placed]) -> Stretch | None:
    if not calls:
        return None
    ids: dict[str, int] = {}
    for call in calls:
        ids[call.id] = ids.get(call.id, 0) + 1
    return Stretch(at, list(calls), open_ids=ids, ends_at=at)


def placed(at: int, entry: Entry, kind: type[Call] | type[Result]) -> list[Placed]:
    """The calls or the results of one entry with their places."""
    found: list[Placed] = []
    for n, part in enumerate(entry.parts):
        if isinstance(part, kind):
            found.append(Placed(at, n, len(found), _id(part), part))
    return found


def _id(part: Call | Result) -> str:
    return (part.id if isinstance(part, Call) else part.answers) or ""
