"""What happens to a turn beside its calls' events: written once, for people and agents."""

from typing import Any
from uuid import UUID

from ledger import ids
from ledger.models import Turn, TurnEvent
from ledger.vocabulary import Actor, TurnEventKind


def note(turn: Turn, kind: TurnEventKind, *, by: Actor, by_id: str = "", **facts: Any) -> TurnEvent:
    """Write one event of a turn, in the caller's transaction."""
    return TurnEvent.objects.create(
        workspace_id=turn.workspace_id, turn=turn, kind=kind, by=by, by_id=by_id, facts=facts
    )


def shown(noun: str, found: list[UUID]) -> list[str]:
    """Ids as facts name them."""
    return [ids.shown(noun, each) for each in found]
