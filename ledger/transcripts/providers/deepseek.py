"""DeepSeek. Source: transcripts, part a, and the vendor's pages on thinking with tools."""

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal
from ledger.transcripts.shapes.chat import ChatShape

PROFILE = Profile(
    name="deepseek",
    shape=ChatShape(name="deepseek", reasoning="reasoning_content"),
    refusals={
        "unanswered_call": Refusal(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. (insufficient tool messages following tool_calls message)"
        ),
        "orphan_output": Refusal(
            "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
            "S",
        ),
        "reasoning_missing": Refusal(
            "Missing `reasoning_content` field in the assistant message at message index {at}"
        ),
    },
    first_is_user=False,
    ids=Ids(pattern=r"[!-~]{1,64}", longest=64, scope="step"),
    reasoning=Reasoning.IN_LOOP,
    reasoning_formats=frozenset({"deepseek"}),
    result_order_free=True,
)
