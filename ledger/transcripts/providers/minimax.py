"""MiniMax, its chat endpoint. Source: transcripts, part a."""

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal
from ledger.transcripts.shapes.chat import ChatShape

NOT_BEHIND = "invalid params, tool call result does not follow tool call (2013)"

REFUSALS = {
    "result_not_adjacent": Refusal(NOT_BEHIND),
    "orphan_output": Refusal("invalid params, tool result's tool id({id}) not found (2013)"),
    "count_mismatch": Refusal("tool call and result not match (2013)"),
    "id_charset": Refusal("tool call id is invalid (2013)", "S"),
    "arguments_invalid": Refusal(
        "invalid function arguments json string, tool_call_id: {id} (2013)"
    ),
    "tools_not_declared": Refusal("function parameters is empty", "S"),
}

PROFILE = Profile(
    name="minimax",
    shape=ChatShape(name="minimax", reasoning="reasoning_details"),
    refusals=REFUSALS,
    first_is_user=False,
    ids=Ids(pattern=r"[A-Za-z0-9_-]{1,64}", longest=64),
    schema_at=("function", "parameters"),
    reasoning=Reasoning.OPTIONAL,
    reasoning_formats=frozenset({"minimax"}),
)
