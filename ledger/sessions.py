"""Sessions and turns: opened, repeated without harm, closed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Max

from ledger import bindings, ids, messages, turn_events
from ledger.bindings import UNSTATED, Stated
from ledger.errors import KeyReused, LedgerError, NotFound, TurnOpen, TurnUnsettled
from ledger.models import Session, ToolCall, Turn
from ledger.models.fields import ClockTimestamp
from ledger.transactions import repeatable
from ledger.transcripts.neutral import Entry
from ledger.vocabulary import Actor, TurnEventKind


def open_session(
    *, workspace_id: UUID, agent_id: UUID, key: str = "", **binding: Any
) -> tuple[Session, bool]:
    """Open a session bound to this agent, and to the directory, host and model it names.

    With a key, the same key gives the same session; True if it is new. Raises KeyReused if
    the key names a session with another binding.
    """
    owner = {"workspace_id": workspace_id, "agent_id": agent_id}
    if not key:
        return Session.objects.create(**owner, **binding), True
    session, new = Session.objects.get_or_create(**owner, key=key, defaults=binding)
    if any(getattr(session, name) != value for name, value in binding.items()):
        raise KeyReused(earlier="a session with another binding")
    return session, new


def get_session(*, workspace_id: UUID, agent_id: UUID, session_id: UUID) -> Session:
    """The agent's own session. Raises NotFound, alike for absent and foreign ones."""
    session = Session.objects.filter(
        id=session_id, workspace_id=workspace_id, agent_id=agent_id
    ).first()
    if session is None:
        raise NotFound(noun="session", about=session_id)
    return session


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a turn is opened with: what the person said, read from its format."""

    format: str
    entries: Sequence[Entry]


def open_turn(
    *,
    session: Session,
    key: str = "",
    model: str = "",
    prompt: Prompt | None = None,
    stated: Stated = UNSTATED,
) -> tuple[Turn, bool]:
    """Open a turn, with its prompt if one is given, or return the one of this key (R90).

    True if it is new. Raises TurnOpen while another turn of the session is open, and for another
    model in mid turn; KeyReused where the key names a turn with another prompt or model;
    StaleEpoch, and BindingDrift, by what is `stated` of the session. The first turn binds what the
    opening of the session left open.
    """
    answer = _open_turn(session, key, model, prompt, stated)
    if isinstance(answer, LedgerError):
        raise answer
    return answer


@repeatable
def _open_turn(
    session: Session, key: str, model: str, prompt: Prompt | None, stated: Stated
) -> tuple[Turn, bool] | LedgerError:
    """A refusal is given back, so that what it notes of a prompt or a drift is committed."""
    session = Session.objects.select_for_update(no_key=True).get(id=session.id)
    drifted = bindings.check(session, stated, at="turn")
    if drifted is not None:
        return drifted
    known = Turn.objects.filter(session=session, key=key).first() if key else None
    if known is not None:
        return _same(known, model, prompt), False
    present = Turn.objects.filter(session=session, closed_at__isnull=True).first()
    if present is not None:
        return TurnOpen(turn=present.number, same=_said_already(present, prompt))
    last = Turn.objects.filter(session=session).aggregate(last=Max("number"))["last"] or 0
    if last == 0:
        bindings.bind_at_first_turn(session, stated)
    turn = Turn.objects.create(
        session=session,
        workspace_id=session.workspace_id,
        number=last + 1,
        key=key,
        model=model or session.model,
    )
    if prompt is None:
        messages.raise_version(session)
    else:
        messages.prompt(session, turn, format=prompt.format, entries=prompt.entries)
    return turn, True


def _same(turn: Turn, model: str, prompt: Prompt | None) -> Turn:
    """The turn of a key that came again, unless it came with something else."""
    if model and model != turn.model:
        if turn.closed_at is None:
            raise TurnOpen(turn=turn.number, same="")
        raise KeyReused(earlier="a turn of another model")
    if prompt is not None and not messages.begins_with(turn, prompt.format, prompt.entries):
        raise KeyReused(earlier="a turn with another prompt")
    return turn


def _said_already(turn: Turn, prompt: Prompt | None) -> str:
    """What is told of a prompt that came again without the key of its turn."""
    if prompt is None or not messages.begins_with(turn, prompt.format, prompt.entries):
        return ""
    turn_events.note(turn, TurnEventKind.REPEATED, by=Actor.AGENT, by_id=turn.session.agent_id.hex)
    return " It was opened with this very prompt."


@repeatable
def close_turn(
    *,
    turn: Turn,
    closed_as: str,
    by: Actor = Actor.AGENT,
    by_id: str = "",
    epoch: int | None = None,
) -> Turn:
    """Close a turn; closing it again changes nothing.

    Raises TurnUnsettled where it would be `answered` with a call still open (semantics, 13.1), and
    StaleEpoch where the session was bound anew.
    """
    session = Session.objects.select_for_update(no_key=True).get(id=turn.session_id)
    bindings.check_epoch(session, epoch)
    # Submits hold the turn's row, shared, so that no call slips in behind this look.
    present = Turn.objects.select_for_update(no_key=True).get(id=turn.id)
    if present.closed_at is None:
        if closed_as == "answered":
            _refuse_unsettled(present)
        close_held(session, present, closed_as, by=by, by_id=by_id)
    turn.refresh_from_db()
    return turn


def close_held(session: Session, turn: Turn, closed_as: str, *, by: Actor, by_id: str = "") -> None:
    """Close an open turn, in the transaction of who holds its session's lock and its own."""
    Turn.objects.filter(id=turn.id, closed_at__isnull=True).update(
        closed_at=ClockTimestamp(), closed_as=closed_as
    )
    turn_events.note(turn, TurnEventKind.CLOSED, by=by, by_id=by_id, closed_as=closed_as)
    messages.raise_version(session)


def _refuse_unsettled(turn: Turn) -> None:
    left = ToolCall.objects.open().filter(session=turn.session_id, turn=turn)
    first = left.order_by("id").first()
    if first is not None:
        raise TurnUnsettled(
            calls=left.count(), first=ids.shown("call", first.id), state=str(first.state)
        )
