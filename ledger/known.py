"""What equal submits have recorded before: looked up by the key, the place in the reply, the id.

Two submits are the same intent if they bear the same key, or without one stand at the same place
of the model's reply. A known key under a new tool call id is asked again: a call of its own.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ledger.models import ToolCall
from ledger.vocabulary import CallState

if TYPE_CHECKING:
    from ledger.submits import Submit

Same = tuple[UUID, str, CallState, str, str]
"""A call that an equal submit has recorded: id, arguments' hash, state, tool, tool call id."""
Known = dict[tuple[Any, ...], Same]
"""Such calls, by what names the intent."""

AGAIN = "again:"

COLUMNS = ("id", "arguments_sha256", "state", "tool", "tool_call_id")


def read(submits: Sequence["Submit"]) -> Known:
    """The calls that equal submits have recorded, by what names the intent."""
    keys = [s for s in submits if s.idempotency_key is not None]
    places = [s for s in submits if s.name is not None and s.idempotency_key is None]
    known = _by_key(keys) if keys else {}
    return known | _asked_again(keys, known) | (_by_place(places) if places else {})


def read_again(submits: Sequence["Submit"]) -> Known:
    """The same, with the calls that these very submits have recorded, by their ids."""
    found = ToolCall.objects.filter(id__in=[submit.call_id for submit in submits])
    by_id: Known = {("id", row[0]): row for row in found.values_list(*COLUMNS)}
    return read(submits) | by_id


def _by_key(submits: Sequence["Submit"]) -> Known:
    found = ToolCall.objects.filter(
        agent__in={s.agent_id for s in submits},
        idempotency_key__in={s.idempotency_key for s in submits},
    )
    rows = found.values_list("agent_id", "idempotency_key", *COLUMNS)
    return {("key", agent_id, key): tuple(rest) for agent_id, key, *rest in rows}


def _by_place(submits: Sequence["Submit"]) -> Known:
    found = ToolCall.objects.filter(
        session__in={s.session_id for s in submits},
        tool_call_id__in={s.tool_call_id for s in submits},
        idempotency_key__isnull=True,
    )
    place = ("agent_id", "session_id", "turn_id", "model_step", "position", "tool_call_id")
    rows = found.values_list(*place, *COLUMNS[:-1])
    return {
        ("place", *where): (id_, sha256, state, tool, where[-1])
        for *where, id_, sha256, state, tool in rows
    }


def _asked_again(submits: Sequence["Submit"], known: Known) -> Known:
    """Calls that repeats under known keys have recorded, by their places in the model's reply."""
    pairs = [(submit, known_as(submit, known)) for submit in submits]
    names = {key_again(s): s for s, same in pairs if same and is_asked_again(s, same[4])}
    if not names:
        return {}
    found = ToolCall.objects.filter(
        agent__in={s.agent_id for s in names.values()}, idempotency_key__in=names
    )
    rows = found.values_list("idempotency_key", *COLUMNS)
    return {names[key or ""].place: tuple(rest) for key, *rest in rows}


def known_as(submit: "Submit", known: Known) -> Same | None:
    """The call that an equal submit has recorded."""
    return known.get(submit.name) if submit.name is not None else None


def is_asked_again(submit: "Submit", tool_call_id: str) -> bool:
    """Whether the model asks anew under a known key: its new tool call id needs an answer."""
    return bool(submit.tool_call_id and tool_call_id) and submit.tool_call_id != tool_call_id


def key_again(submit: "Submit") -> str:
    """The name of a repeat under a known key: one for each place in a model's reply.

    Unique with the agent like every key, so that the repeat itself, sent again, is one call too.
    """
    named = "\x1f".join(map(str, (submit.idempotency_key, *submit.place[2:])))
    return f"{AGAIN}{hashlib.sha256(named.encode()).hexdigest()}"
