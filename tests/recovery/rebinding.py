"""Binding sessions anew in tests, as a person would."""

from django.contrib.auth.models import User

from ledger.conditions import Seen
from ledger.models import Session
from recovery import rebinds
from recovery.rebinds import Binding
from tests.cast import as_decider

GROUNDS = "The box lost its power; the session goes on elsewhere."


def rebound(
    session: Session, *, by: User, seen: int | None = None, grounds: str = GROUNDS, **to: str
) -> Session:
    """Bind a session anew on the epoch that it has, or on the one `seen`."""
    return rebinds.rebind(
        workspace_id=session.workspace_id,
        session_id=session.id,
        binding=Binding(**to),
        grounds=grounds,
        seen=Seen(version=Session.objects.get(id=session.id).epoch if seen is None else seen),
        by=as_decider(by),
    )
