"""Sessions and turns: opened, repeated without harm, closed."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max

from ledger import ids
from ledger.errors import KeyReused, NotFound, TurnOpen, TurnUnsettled
from ledger.models import Session, ToolCall, Turn
from ledger.models.fields import ClockTimestamp


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
        raise NotFound(noun="session")
    return session


def open_turn(*, session: Session, key: str = "", model: str = "") -> tuple[Turn, bool]:
    """Open a turn, or return the one of this key; True if it is new (R90).

    Raises TurnOpen while another turn of the session is open.
    """
    with transaction.atomic():
        Session.objects.select_for_update().get(id=session.id)
        if key:
            known = Turn.objects.filter(session=session, key=key).first()
            if known is not None:
                return known, False
        present = Turn.objects.filter(session=session, closed_at__isnull=True).first()
        if present is not None:
            raise TurnOpen(turn=present.number)
        last = Turn.objects.filter(session=session).aggregate(last=Max("number"))["last"] or 0
        turn = Turn.objects.create(
            session=session,
            workspace_id=session.workspace_id,
            number=last + 1,
            key=key,
            model=model or session.model,
        )
        return turn, True


def close_turn(*, turn: Turn, closed_as: str) -> Turn:
    """Close a turn; closing it again changes nothing.

    Raises TurnUnsettled where it would be `answered` with a call still open (semantics, 13.1).
    """
    with transaction.atomic():
        # Submits hold the turn's row, shared, so that no call slips in behind this look.
        present = Turn.objects.select_for_update(no_key=True).get(id=turn.id)
        if present.closed_at is None and closed_as == "answered":
            _refuse_unsettled(present)
        Turn.objects.filter(id=turn.id, closed_at__isnull=True).update(
            closed_at=ClockTimestamp(), closed_as=closed_as
        )
    turn.refresh_from_db()
    return turn


def _refuse_unsettled(turn: Turn) -> None:
    left = ToolCall.objects.open().filter(session=turn.session_id, turn=turn)
    first = left.order_by("id").first()
    if first is not None:
        raise TurnUnsettled(
            calls=left.count(), first=ids.shown("call", first.id), state=str(first.state)
        )
