"""Kimi (Moonshot), and models served like it. Source: transcripts, part a.

The words of `reasoning_missing` are those of public reports on many clients.
"""

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal
from ledger.transcripts.shapes.chat import ChatShape

PROFILE = Profile(
    name="kimi",
    shape=ChatShape(name="kimi", reasoning="reasoning_content"),
    refusals={
        "orphan_output": Refusal("tool_call_id  is not found", "S"),
        "duplicate_result": Refusal("duplicate_tool_result_in_request"),
        "unanswered_call": Refusal(
            "an assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            "{ids}"
        ),
        "reasoning_missing": Refusal(
            "thinking is enabled but reasoning_content is missing in assistant tool call message "
            "at index {at}"
        ),
    },
    first_is_user=False,
    # The model's own ids are like `functions.search:0`.
    ids=Ids(pattern=r"[A-Za-z0-9_.:-]{1,64}", longest=64),
    reasoning=Reasoning.WITH_CALLS,
    reasoning_formats=frozenset({"kimi"}),
    result_order_free=True,
)
