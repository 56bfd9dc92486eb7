"""Chat messages in few words, and a session of the ledger to repair them with."""

from dataclasses import replace
from typing import Any

from ledger.transcripts.known import Known, KnownCall
from ledger.transcripts.neutral import Call, Entry, Role, Text
from ledger.transcripts.profiles import profile
from ledger.transcripts.repair import Options, Repaired, repair


def said(text: str = "Go on.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(label: Any, name: str = "find_order", arguments: Any = '{"order":4711}') -> dict[str, Any]:
    return {
        "id": label,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def asked(*labels: Any, text: str | None = None, **members: Any) -> dict[str, Any]:
    """A reply with calls, given as labels or as whole calls."""
    calls = [call(label) if isinstance(label, str) else label for label in labels]
    return {"role": "assistant", "content": text, "tool_calls": calls, **members}


def replied(text: str = "Done.") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def got(label: str, text: str = "118.00") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": label, "content": text}


def mend(transcript: Any, target: str = "openai-chat", known: Any = (), **options: Any) -> Repaired:
    return repair(
        transcript,
        format="openai-chat",
        profile=profile(target),
        ledger=Known(known),
        options=Options(**options),
    )


def kinds(repaired: Repaired) -> list[str]:
    return [change.kind for change in repaired.report.changes]


def recorded(number: int, label: str, result: str | None = "118.00", **members: Any) -> KnownCall:
    """A call of the ledger; `result` None while there is none."""
    known = KnownCall(
        ledger_id=f"call_{number}",
        provider_id=label,
        tool="find_order",
        call=Call(label, "find_order", {"order": 4711}, ledger_id=f"call_{number}"),
        step=number,
        result=None if result is None else (Text(result),),
    )
    return replace(known, **members)


def whole_reply(*known: KnownCall) -> list[KnownCall]:
    """The calls of one reply that the ledger holds whole."""
    reply = Entry(Role.ASSISTANT, tuple(each.call for each in known))
    return [replace(each, reply=reply) for each in known]
