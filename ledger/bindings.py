"""What a session is bound to, and who acts for it (R110, R111; semantics, section 17).

A session is bound to its agent, and to the directory, host and model that were named when it was
opened or by its first turn; a field that nobody named is not bound, and is not compared. Only a
person binds it anew (`recovery/rebinds.py`), which raises the epoch and fences whoever held it.

Who acts for a session states the epoch. No statement means the first epoch: until the first
re-bind nobody needs to know the word, and after it a process that never heard of it is refused.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from uuid import UUID

from ledger import pipelines
from ledger.errors import BindingDrift, LedgerError, NotFound, StaleEpoch, TurnOpen
from ledger.models import Session, Turn
from ledger.tables import table
from ledger.transactions import repeatable
from ledger.vocabulary import spoken

FIRST_EPOCH = 1
"""The epoch of a call outside any session, and of a session that was never bound anew."""

RESUMPTION = "resumption"

PLACE = ("working_directory", "host")
"""Where a tool that touches files or subprocesses would do so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What somebody who acts for a session says of it; None where nothing was said."""

    epoch: int | None = None
    working_directory: str | None = None
    host: str | None = None
    model: str | None = None


UNSTATED = Stated()


@dataclass(frozen=True, slots=True)
class Drift:
    """A field of the binding that differs from what somebody stated.

    `at` is the verb; `blocked` whether it was refused for that, or allowed and noted.
    """

    session_id: UUID
    workspace_id: UUID
    field: str
    epoch: int
    bound: str
    stated: str
    at: str
    blocked: bool


def check_epoch(session: Session, stated: int | None) -> None:
    """Raise StaleEpoch unless this epoch of the session is meant; None means the first.

    Where something is changed the caller holds the session's lock, shared at least.
    """
    given = FIRST_EPOCH if stated is None else stated
    if given != session.epoch:
        raise StaleEpoch(epoch=session.epoch, stated=given)


def differing(
    session: Session, *, working_directory: str | None, host: str | None
) -> dict[str, str]:
    """The fields of the place that differ from what is bound, with what was stated."""
    stated = {"working_directory": working_directory, "host": host}
    return {
        name: given
        for name, given in stated.items()
        if given is not None and getattr(session, name) and given != getattr(session, name)
    }


def drift(session: Session, field: str, stated: str, *, at: str, blocked: bool) -> Drift:
    """What is to be noted of a field that differs."""
    bound = str(getattr(session, field))
    return Drift(session.id, session.workspace_id, field, session.epoch, bound, stated, at, blocked)


def refusal_of(drifted: Drift) -> BindingDrift:
    """What is answered where a drift is not allowed."""
    return BindingDrift(field=spoken(drifted.field), drift=drifted)


@repeatable
def note_refused(refusal: BindingDrift) -> None:
    """Keep the drift of a refusal that took its transaction with it."""
    note([refusal.facts["drift"]])


COLUMNS = (
    ("session_id", "uuid"),
    ("workspace_id", "uuid"),
    ("field", "text"),
    ("epoch", "integer"),
    ("bound", "text"),
    ("stated", "text"),
    ("at", "text"),
    ("blocked", "boolean"),
)
TOLD_AGAIN_MIN = 10
"""After how long a drift that goes on is told once more, in minutes."""

NOTE = (
    "INSERT INTO ledger_drift (session_id, workspace_id, field, epoch, bound, stated, at, blocked, "  # noqa: S608 a constant of this module
    "times) SELECT *, 1 FROM {} ON CONFLICT (session_id, field, epoch) DO UPDATE SET "
    "times = ledger_drift.times + 1, last_at = clock_timestamp(), stated = EXCLUDED.stated, "
    "at = EXCLUDED.at, blocked = ledger_drift.blocked OR EXCLUDED.blocked, "
    "told_at = CASE WHEN ledger_drift.told_at > clock_timestamp() "
    f"- interval '{TOLD_AGAIN_MIN} minutes' THEN ledger_drift.told_at END"
)


def note(drifts: Sequence[Drift]) -> None:
    """Keep drifts, or count them where the same field differed before; recovery tells of them."""
    # One row for each key, in one order: a statement may not touch a conflicting row twice.
    unique = {(each.session_id, each.field): each for each in drifts}
    text, parameters = table(COLUMNS, [astuple(unique[key]) for key in sorted(unique)])
    pipelines.write(NOTE.format(text), parameters)


def check(session: Session, stated: Stated, *, at: str) -> StaleEpoch | BindingDrift | None:
    """The refusal of who acts for a session from elsewhere; what differs is noted.

    The caller holds the session's lock, and commits before it raises. A stale epoch is an incident
    only where somebody comes back with it: what a fenced process still sends is refused, no more.
    """
    try:
        check_epoch(session, stated.epoch)
    except StaleEpoch as refusal:
        if at == RESUMPTION:
            told = str(FIRST_EPOCH if stated.epoch is None else stated.epoch)
            note([drift(session, "epoch", told, at=at, blocked=True)])
        return refusal
    differs = differing(session, working_directory=stated.working_directory, host=stated.host)
    found = [drift(session, name, given, at=at, blocked=True) for name, given in differs.items()]
    if not found:
        return None
    note(found)
    return refusal_of(found[0])


def bind_at_first_turn(session: Session, stated: Stated) -> None:
    """Bind what the first turn names and the opening of the session left open (17.1).

    The caller holds the session's lock.
    """
    named = {
        name: getattr(stated, name)
        for name in PLACE
        if getattr(stated, name) and not getattr(session, name)
    }
    if named:
        Session.objects.filter(id=session.id).update(**named)
        for name, value in named.items():
            setattr(session, name, value)


def hold(*, session_id: UUID, workspace_id: UUID, agent_id: UUID) -> Session:
    """The agent's own session under its row's lock. Raises NotFound, for foreign ones alike."""
    session = (
        Session.objects.select_for_update(no_key=True, of=("self",))
        .filter(id=session_id, workspace=workspace_id, agent=agent_id)
        .first()
    )
    if session is None:
        raise NotFound(noun="session", about=session_id)
    return session


def come_back(
    *, session_id: UUID, workspace_id: UUID, agent_id: UUID, stated: Stated
) -> tuple[Session, Turn | None]:
    """An agent's process comes back to its session: the same binding goes on, with its open turn.

    Changes nothing. Raises NotFound; StaleEpoch and BindingDrift where it is not the one that is
    bound, which is noted and opens an incident; TurnOpen for another model inside a turn.
    """
    answer = _come_back(session_id, workspace_id, agent_id, stated)
    if isinstance(answer, LedgerError):
        raise answer
    return answer


@repeatable
def _come_back(
    session_id: UUID, workspace_id: UUID, agent_id: UUID, stated: Stated
) -> tuple[Session, Turn | None] | LedgerError:
    """A refusal is given back, so that what is noted of a drift is committed."""
    session = hold(session_id=session_id, workspace_id=workspace_id, agent_id=agent_id)
    refusal = check(session, stated, at=RESUMPTION)
    if refusal is not None:
        return refusal
    turn = Turn.objects.filter(session=session, closed_at__isnull=True).first()
    if turn is not None and stated.model and turn.model and stated.model != turn.model:
        return TurnOpen(turn=turn.number, same="")
    return session, turn
