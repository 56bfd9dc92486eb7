"""Bedrock Converse. Source: transcripts, part a, and the vendor's API reference.

One set of rules for all models behind it, the strictest of each: a model that refuses text in the
message of results is one change of model away.
"""

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal, ResultsIn
from ledger.transcripts.shapes.bedrock import Bedrock

PROFILE = Profile(
    name="bedrock",
    shape=Bedrock(),
    refusals={
        "unanswered_call": Refusal(
            "Expected toolResult blocks at messages.{next}.content for the following Ids: {ids}"
        ),
        "count_mismatch": Refusal(
            "The number of toolResult blocks at messages.{at}.content exceeds the number of "
            "toolUse blocks of previous turn."
        ),
        "roles_not_alternating": Refusal(
            "A conversation must alternate between user and assistant roles. Make sure the "
            "conversation alternates between user and assistant roles and try again."
        ),
        "first_not_user": Refusal(
            "A conversation must start with a user message. Try again with a conversation that "
            "starts with a user message."
        ),
        "id_charset": Refusal(
            "Value '{id}' at 'messages.{at}.member.content.{part}.member.toolUse.toolUseId' failed "
            "to satisfy constraint: Member must satisfy regular expression pattern: "
            "[a-zA-Z0-9_-]+",
            "V",
        ),
        "empty_text": Refusal(
            "The content field at messages.{at}.content.{part}.toolResult cannot be empty when "
            "status value is error."
        ),
        "text_beside_result": Refusal(
            "messages.{at}.content: Conversation blocks and tool result blocks cannot be provided "
            "in the same turn."
        ),
        "tools_not_declared": Refusal(
            "The toolConfig field must be defined when using toolUse and toolResult content "
            "blocks.",
            "S",
        ),
    },
    results_in=ResultsIn.TOGETHER,
    result_role="user",
    text_beside_results=False,
    roles_alternate=True,
    reply_after_results=True,
    ids=Ids(pattern=r"[A-Za-z0-9_-]{1,64}", longest=64),
    reasoning=Reasoning.OPTIONAL,
    reasoning_formats=frozenset({"bedrock"}),
    result_order_free=True,
    arguments_as_text=False,
    system_apart=True,
    system_leads=True,
    tools_key="toolConfig",
)
