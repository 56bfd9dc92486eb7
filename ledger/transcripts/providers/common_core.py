"""The rules that every provider has in common, in words of our own: no provider of its own.

Source: transcripts, part a, common core. Each is worded as what is wrong and what is needed.
"""

from collections.abc import Mapping

from ledger.transcripts.profiles import Refusal

REFUSALS: Mapping[str, Refusal] = {
    "unanswered_call": Refusal(
        "Message {at} asks for calls without results directly behind it: {ids}. Each call needs "
        "exactly one result.",
        "V",
    ),
    "orphan_output": Refusal(
        "Message {at} holds a result for {id}, which no reply directly before it asked for.", "V"
    ),
    "duplicate_result": Refusal("Message {at} holds a further result for {id}.", "V"),
    "duplicate_call_id": Refusal("Message {at} uses the call id {id} a second time.", "V"),
    "result_not_adjacent": Refusal(
        "Message {at} holds a result for {id}, but does not follow its call directly.", "V"
    ),
    "result_order": Refusal(
        "The results behind message {at} do not stand in the order of their calls.", "V"
    ),
    "id_charset": Refusal(
        "Message {at} uses the call id {id}: letters, digits, `_` and `-`, at most 40, are safe "
        "everywhere.",
        "V",
    ),
    "name_invalid": Refusal(
        "Message {at} calls a tool by a name that is not 1 to 64 letters, digits, `_` and `-`.",
        "V",
    ),
    "arguments_invalid": Refusal(
        "Message {at} asks for {id} with arguments that are no JSON object.", "V"
    ),
    "empty_text": Refusal("Message {at} holds an empty text.", "V"),
    "first_not_user": Refusal("The first message is not the user's.", "V"),
}
