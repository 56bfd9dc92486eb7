"""What the ledger knows of a session's calls, as the repair of a transcript takes it.

One reading of the session in a fixed number of queries, linear in its calls. Calls that a
compaction covers are known as well: a transcript that an agent kept may still hold them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ledger import conversations, entries, ids
from ledger.conversations import Conversation
from ledger.models import Session
from ledger.outcomes import Shown
from ledger.transcripts.known import Known, KnownCall
from ledger.transcripts.neutral import Call, Entry, Role, Text
from ledger.vocabulary import DeliveryKind

IN_PLACE_OF_A_RESULT = frozenset(
    {DeliveryKind.REAL, DeliveryKind.REPLAYED, DeliveryKind.OPERATOR_STATED}
)
"""Kinds that answer a call for good; every other one is a notice, and a result beats it (T17)."""


def known_of(session: Session) -> Known:
    """The calls of a session with what each is shown as now."""
    return of_conversation(conversations.read(session))


def of_conversation(conversation: Conversation) -> Known:
    """The same for a conversation that was read already."""
    # A summary hides what it covers from a model, not from a repair.
    whole = replace(conversation, compaction=None)
    asked = {
        call.ledger_id: (entry, call)
        for entry in entries.entries(whole).entries
        if entry.role is Role.ASSISTANT
        for call in entry.calls
        if call.ledger_id
    }
    return Known(_known(whole, asked))


def _known(
    conversation: Conversation, asked: Mapping[str, tuple[Entry, Call]]
) -> Iterator[KnownCall]:
    for fetched in conversation.calls:
        row = fetched.call
        reply, call = asked[ids.shown("call", row.id)]
        is_whole = (row.turn_id, row.model_step) in conversation.replies
        yield KnownCall(
            ledger_id=call.ledger_id,
            provider_id=call.id or "",
            tool=call.name,
            call=call,
            turn=conversation.number_of(row),
            step=row.model_step,
            position=row.position,
            reply=reply if is_whole else None,
            **_outcome(conversation.now(fetched)),
        )


def _outcome(shown: Shown) -> dict[str, Any]:
    if shown.kind in IN_PLACE_OF_A_RESULT:
        parts = shown.parts or (Text(shown.text),)
        return {"result": parts, "is_error": shown.is_error, "delivery": str(shown.kind)}
    return {"template": shown.template, "notice": shown.text}
