"""Anthropic Messages. Source: transcripts, part a, and the vendor's API reference."""

from collections.abc import Mapping

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal, ResultsIn
from ledger.transcripts.shapes.anthropic import Anthropic

UNANSWERED = (
    "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
    "{ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
    "message."
)
COUNT = (
    "messages.{next}: Did not find {n} `tool_result` block(s) at the beginning of this message. "
    "Messages following `tool_use` blocks must begin with a matching number of `tool_result` "
    "blocks."
)

REFUSALS: Mapping[str, Refusal] = {
    "unanswered_call": Refusal(UNANSWERED, older=(COUNT,)),
    "orphan_output": Refusal(
        "messages.{at}.content.{part}: unexpected `tool_use_id` found in `tool_result` blocks: "
        "{id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous "
        "message."
    ),
    "duplicate_result": Refusal(
        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
    ),
    "duplicate_call_id": Refusal(
        "messages.{at}.content.{part}: `tool_use` ids must be unique",
    ),
    "id_charset": Refusal(
        "messages.{at}.content.{part}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    ),
    "text_before_result": Refusal(UNANSWERED.replace("{at}", "{previous}"), "V", older=(COUNT,)),
    "text_after_call": Refusal(UNANSWERED, "S"),
    "empty_text": Refusal("messages: text content blocks must be non-empty"),
    "first_not_user": Refusal('messages: first message must use the "user" role', "E"),
    "reasoning_missing": Refusal(
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
        older=(
            "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
            "modified",
        ),
    ),
    "server_tool_split": Refusal(
        "messages.{at}.content.{part}: unexpected `tool_use_id` found in `{kind}` blocks: {id}. "
        "Each `{kind}` block must have a corresponding `server_tool_use` block before it."
    ),
}

PROFILE = Profile(
    name="anthropic",
    shape=Anthropic(),
    refusals=REFUSALS,
    results_in=ResultsIn.TOGETHER,
    result_role="user",
    ids=Ids(pattern=r"[A-Za-z0-9_-]+", longest=0),
    reasoning=Reasoning.OPENING,
    reasoning_formats=frozenset({"anthropic"}),
    result_order_free=True,
    arguments_as_text=False,
    system_apart=True,
    system_leads=True,
)
