"""OpenAI Chat Completions. Source: transcripts, part a, and the vendor's API reference."""

from ledger.transcripts.profiles import Ids, Profile, Refusal
from ledger.transcripts.shapes.chat import ChatShape

REFUSALS = {
    "unanswered_call": Refusal(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: {ids}"
    ),
    "orphan_output": Refusal(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
        "with 'tool_calls'."
    ),
    "id_too_long": Refusal(
        "Invalid 'messages[{at}].tool_calls[{part}].id': string too long. Expected a string with "
        "maximum length {n}, but got a string with length {m} instead."
    ),
    "empty_calls": Refusal(
        "Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length "
        "1, but got an empty array instead."
    ),
}

PROFILE = Profile(
    name="openai-chat",
    shape=ChatShape(custom_calls=True),
    refusals=REFUSALS,
    first_is_user=False,
    # Its own alphabet is free; only the length is refused.
    ids=Ids(pattern=r"[!-~]{1,40}", scope="step"),
    result_order_free=True,
    arguments_as_text=True,
)
