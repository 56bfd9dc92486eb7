"""Mistral. Source: transcripts, part a, and the validator that the vendor publishes.

Ids are always sent as the older tokenizers want them. A user message may not follow results.
"""

from string import ascii_letters, digits

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal
from ledger.transcripts.shapes.chat import ChatShape

PROFILE = Profile(
    name="mistral",
    shape=ChatShape(name="mistral", names_results=True, thoughts="thinking"),
    refusals={
        "id_charset": Refusal(
            "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.", "V"
        ),
        "count_mismatch": Refusal("Not the same number of function calls and responses", "V"),
        "orphan_output": Refusal("Unexpected tool call id {id} in tool results", "V"),
        "duplicate_result": Refusal("Duplicate tool call id {id} in tool results", "V"),
        "duplicate_call_id": Refusal("Duplicate tool call id {id} in assistant message", "V"),
        "result_not_adjacent": Refusal("Unexpected role 'tool' after role '{before}'", "V"),
        "roles_not_alternating": Refusal("Unexpected role '{role}' after role '{before}'", "V"),
        "last_role": Refusal(
            "Expected last role User or Tool (or Assistant with prefix) for serving but got "
            "assistant",
            "V",
        ),
        "first_not_user": Refusal(
            "Conversation must start with a user message or system message", "V"
        ),
    },
    first_is_user=False,
    last_not_assistant=True,
    reply_after_results=True,
    ids=Ids(
        pattern=r"[A-Za-z0-9]{9}",
        longest=9,
        alphabet=ascii_letters + digits,
        prefix="",
        length=9,
        scope="step",
    ),
    reasoning=Reasoning.OPTIONAL,
    reasoning_formats=frozenset({"mistral"}),
    result_order_free=True,
    system_leads=True,
)
