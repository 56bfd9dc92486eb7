"""Compactions: prepared without a change, committed in one transaction (R106, R107).

`prepare` says where a cut is allowed and what a new context must be told of unresolved calls, with
a token for the transcript's version. `commit` takes the session's lock and those of its open
calls, so that none comes and none is settled, makes the carry-over anew, and compares: unresolved
before = carry-over = unresolved after, which PostgreSQL checks once more. A compaction changes
what is shown, never what is kept: no call, interrupt, budget, binding or delivery is touched.

Locks: session, its open calls in the order of their ids, then appends.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F

from ledger import carry_over, cut_tokens, cuts, faults, ids, unresolved
from ledger.carry_over import Line
from ledger.cut_tokens import Looked
from ledger.cuts import Asked, Cut, Place, Reply, TurnSeen
from ledger.errors import (
    CutRefused,
    Invalid,
    KeyReused,
    NotFound,
    StaleEpoch,
    StaleTranscript,
)
from ledger.models import Compaction, Message, Session, ToolCall, Turn
from ledger.transactions import repeatable

CUTS_SHOWN = 100


class CarryOverDiffers(RuntimeError):
    """The calls carried over are not the unresolved ones. A fault of ours; nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a compaction may do now. `allowed` is the last cut at or before the one proposed.

    `cuts` are the latest hundred, `carried` one line for each unresolved call of the session.
    """

    session: Session
    cuts: Sequence[Cut]
    allowed: Cut | None
    carried: Sequence[Line]
    token: str
    looked: Looked


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A compaction as it is asked for: the token of its preparation, the cut, the summary."""

    token: str
    cut: Place
    summary: str
    key: str = ""
    epoch: int | None = None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.summary.encode()).hexdigest()


def prepare(
    *, session: Session, proposed: Place | None = None, version: int | None = None
) -> Prepared:
    """Say where the session may be cut; nothing is written.

    Raises StaleTranscript if `version` is given and the transcript has gone on since.
    """
    if version is not None and version != session.version:
        raise StaleTranscript(given=version, present=session.version)
    token, looked = cut_tokens.issue(session)
    found = _cuts_of(session)
    return Prepared(
        session=session,
        cuts=found[-CUTS_SHOWN:],
        allowed=cuts.at_or_before(found, proposed),
        carried=carry_over.lines(unresolved.of_session(session.id)),
        token=token,
        looked=looked,
    )


@repeatable
def commit(
    *, workspace_id: UUID, agent_id: UUID, session_id: UUID, wanted: Wanted
) -> tuple[Compaction, bool]:
    """Commit a compaction; the same one again gives the same row, and False.

    Raises NotFound, Invalid for a token that is not ours, KeyReused, CutExpired, StaleEpoch,
    StaleTranscript and CutRefused; each of them changed nothing.
    """
    looked = cut_tokens.read(wanted.token, session_id)
    if not wanted.summary.strip():
        raise Invalid(detail="A compaction needs a summary of what it stands for.")
    session = _locked(workspace_id, agent_id, session_id)
    known = _known(session, looked, wanted)
    if known is not None:
        return known, False
    looked.refuse_if_over()
    if session.epoch != looked.epoch or wanted.epoch not in (None, session.epoch):
        raise StaleEpoch(epoch=session.epoch, stated=looked.epoch)
    if session.version != looked.version:
        raise StaleTranscript(given=looked.version, present=session.version)
    _refuse_cut(session, wanted.cut)
    return _write(session, wanted), True


def _locked(workspace_id: UUID, agent_id: UUID, session_id: UUID) -> Session:
    session = (
        Session.objects.select_for_update(no_key=True)
        .filter(id=session_id, workspace=workspace_id, agent=agent_id)
        .first()
    )
    if session is None:
        raise NotFound(noun="session")
    return session


def _known(session: Session, looked: Looked, wanted: Wanted) -> Compaction | None:
    """The compaction that an equal request has made. Raises KeyReused."""
    rows = Compaction.objects.filter(session=session)
    keyed = rows.filter(key=wanted.key).first() if wanted.key else None
    if keyed is not None and not _is_same(keyed, wanted):
        raise KeyReused(earlier=f"compaction {keyed.number} of this session")
    found = keyed or rows.filter(version_before=looked.version).first()
    return found if found is not None and _is_same(found, wanted) else None


def _is_same(row: Compaction, wanted: Wanted) -> bool:
    return (through(row), row.summary_sha256) == (wanted.cut, wanted.sha256)


def through(row: Compaction) -> Place:
    """The place up to which a compaction's summary stands for what was said."""
    return Place(row.through_turn, row.through_position)


def latest(session_id: UUID) -> Compaction | None:
    """The compaction that holds now."""
    return Compaction.objects.filter(session=session_id).order_by("number").last()


def _refuse_cut(session: Session, wanted: Place) -> None:
    found = _cuts_of(session)
    if any(each.place == wanted for each in found):
        return
    nearest = cuts.at_or_before(found, wanted)
    raise CutRefused(
        turn=wanted.turn,
        position=wanted.position,
        nearest=f"The nearest before it is position {nearest.place.position} of turn "
        f"{nearest.place.turn}."
        if nearest
        else "There is none before it.",
    )


def _write(session: Session, wanted: Wanted) -> Compaction:
    before = unresolved.held(session.id)
    carried = carry_over.lines(before)
    last = latest(session.id)
    row = Compaction.objects.create(
        workspace_id=session.workspace_id,
        session=session,
        number=last.number + 1 if last else 1,
        through_turn=wanted.cut.turn,
        through_position=wanted.cut.position,
        summary=wanted.summary,
        summary_sha256=wanted.sha256,
        carry_over=carried,
        unresolved=[call.id for call in before],
        version_before=session.version,
        version=session.version + 1,
        key=wanted.key,
    )
    Session.objects.filter(id=session.id).update(version=F("version") + 1)
    _compare(row, carried)
    first = before[0] if before else None
    faults.point("during_compaction", first.id if first else None, first.tool if first else "")
    return row


def _compare(row: Compaction, carried: Sequence[Line]) -> None:
    """Unresolved before = carry-over = unresolved after. Raises CarryOverDiffers."""
    told = {ids.read("call", line["call"]) for line in carried}
    after = {call.id for call in unresolved.of_session(row.session_id)}
    if not set(row.unresolved) == told == after:
        lost = ", ".join(sorted(ids.shown("call", each) for each in after ^ told))
        raise CarryOverDiffers(f"The carry-over and the open calls differ in {lost}.")


# Where it may cut


def _cuts_of(session: Session) -> list[Cut]:
    last = latest(session.id)
    behind = through(last) if last else None
    since = behind.turn if behind else 0
    rows = list(Turn.objects.filter(session=session, number__gte=since).order_by("number"))
    return cuts.allowed(_seen(session, rows), behind=behind)


def _seen(session: Session, rows: Sequence[Turn]) -> list[TurnSeen]:
    """The turns as a cut sees them, in three queries."""
    last: dict[UUID, int] = {}
    replies: dict[UUID, list[Reply]] = defaultdict(list)
    said = Message.objects.filter(session=session, turn__in=rows).order_by("turn", "position")
    for turn_id, position, step in said.values_list("turn_id", "position", "model_step"):
        last[turn_id] = position
        if step is not None:
            replies[turn_id].append(Reply(position, step))
    asked: dict[UUID | None, list[Asked]] = defaultdict(list)
    calls = ToolCall.objects.filter(session=session, turn__in=rows).order_by("id")
    for call_id, turn_id, step, settled_at in calls.values_list(
        "id", "turn_id", "model_step", "settled_at"
    ):
        asked[turn_id].append(Asked(call_id, step, settled_at is None))
    return [
        TurnSeen(
            number=turn.number,
            is_closed=turn.closed_at is not None,
            last=last.get(turn.id),
            replies=replies[turn.id],
            asked=asked[turn.id],
        )
        for turn in rows
    ]
