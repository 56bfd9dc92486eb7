"""What a preview says beside the ruling: budgets, the text's place, and what if it fails.

Read from the same rows and the same ruling that the deed would follow (R135); nothing is written.
Texts are as they were recorded: whoever shows them masks them. Source: console, section 6.
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from ledger.models import Message, ToolCall
from ledger.vocabulary import CallState
from recovery import standings
from recovery.rulings import Facts, Ruling
from recovery.standings import Standing

ENTRY_CHARACTERS_MAX = 300


def budgets(call: ToolCall, ruling: Ruling) -> list[dict[str, Any]]:
    """Repeats spent and allowed by scope, before and after; a person's repeat passes what is spent.

    The call's own come first, then those of its turn, session and tool as far as it has them.
    """
    costs = int(ruling.state is CallState.BACKING_OFF)
    own = standings.own(call)
    allowed = ruling.columns.get("attempts_allowed", call.attempts_allowed)
    shared = [_budget(each, each.limit, costs) for each in standings.of_call(call).values()]
    return [_budget(own, max(own.limit, allowed - 1), costs), *shared]


def _budget(standing: Standing, limit_after: int, costs: int) -> dict[str, Any]:
    return {
        "scope": str(standing.scope),
        "spent": {"before": standing.spent, "after": standing.spent + costs},
        "limit": {"before": standing.limit, "after": limit_after},
    }


def place(call: ToolCall) -> dict[str, Any]:
    """Where the text stands in the transcript: its role and id, the entries before and after."""
    reply = _reply(call)
    return {
        "role": "tool",
        "tool_call_id": call.tool_call_id or None,
        "before": _entry(reply) if reply else None,
        "after": _entry(after) if reply and (after := _after(reply)) else None,
    }


def _reply(call: ToolCall) -> Message | None:
    """The reply that asked for the call; the last message of its turn where none was recorded."""
    if call.turn_id is None:
        return None
    own = Message.objects.filter(turn=call.turn_id).select_related("turn")
    asked = own.filter(model_step=call.model_step) if call.model_step is not None else own.none()
    return asked.first() or own.order_by("-position").first()


def _after(reply: Message) -> Message | None:
    later = Q(turn=reply.turn_id, position__gt=reply.position)
    later |= Q(turn__number__gt=reply.turn.number)
    rows = Message.objects.filter(later, session=reply.session_id).select_related("turn")
    return rows.order_by("turn__number", "position").first()


def _entry(message: Message) -> dict[str, Any]:
    return {
        "turn": message.turn.number,
        "position": message.position,
        "role": message.role,
        "text": " ".join(_said(message))[:ENTRY_CHARACTERS_MAX],
    }


def _said(message: Message) -> Iterator[str]:
    parts = message.parts_json
    yield from (each["text"] for each in parts if "text" in each)
    calls = sum("call" in each for each in parts)
    if calls:
        yield f"[asks for {calls} call{'s' if calls > 1 else ''}]"


HELD = "Calls of its turn that wait for it stay held until it is settled."
SESSION: dict[CallState, str] = {
    CallState.BACKING_OFF: f"The session waits for the repeat. {HELD}",
    CallState.PARKED: f"The session waits for the work outside. {HELD}",
    CallState.INTERRUPTED: f"The session waits while the outside is asked. {HELD}",
}
"""Whether the session goes on, by the state after; where it is settled, it does."""
GOES_ON = "The session goes on by itself: its agent reads this where it waits or asks next."

FAILS: dict[CallState, str] = {
    CallState.BACKING_OFF: "If the repeat is refused, the call fails without a second effect; if "
    "it is lost past its boundary, a person is asked again.",
    CallState.PARKED: "If the outside does not know the handle, a person is asked again.",
    CallState.INTERRUPTED: "If the outside gives no proof, a person is asked again.",
}
"""What if that does not work out, by the state after."""
OVERTAKEN = (
    "If the call moves before this is carried out, such as by a late result, nothing of it is "
    "done: the decision ends as overtaken, and the incident says why."
)


def aftermath(facts: Facts, ruling: Ruling) -> dict[str, str]:
    """Does the session go on by itself, and what if it fails; each a sentence or two."""
    waits = bool(ruling.delay_s or ruling.second_person)
    fails = [FAILS.get(ruling.state, ""), OVERTAKEN if waits else ""]
    return {
        "session": SESSION.get(ruling.state, GOES_ON),
        "if_it_fails": " ".join(each for each in fails if each)
        or "It is one write in the ledger: it is done as a whole or not at all.",
    }
