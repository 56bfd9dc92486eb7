"""OpenAI Responses. Source: transcripts, part a, and the vendor's API reference."""

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal, ResultsIn
from ledger.transcripts.shapes.responses import Responses

FAMILIES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fc",
    "custom_tool_call": "ctc",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
    "computer_call": "cu",
}
"""The beginning of an item's own id, by its type. Source: the API reference's examples."""

PROFILE = Profile(
    name="openai-responses",
    shape=Responses(),
    refusals={
        "unanswered_call": Refusal("No tool output found for function call {id}."),
        "orphan_output": Refusal("No tool call found for function call output with call_id {id}."),
        "id_too_long": Refusal(
            "Invalid 'input[{at}].call_id': string too long. Expected a string with maximum length "
            "{n}, but got a string with length {m} instead."
        ),
        "item_id_family": Refusal(
            "Invalid 'input[{at}].id': '{id}'. Expected an ID that begins with '{family}'."
        ),
        "reasoning_alone": Refusal(
            "Item '{id}' of type 'reasoning' was provided without its required following item."
        ),
        "reasoning_missing": Refusal(
            "Item '{id}' of type 'function_call' was provided without its required 'reasoning' "
            "item: 'rs_…'."
        ),
        "output_type": Refusal("No tool output found for {kind} {id}.", "V"),
    },
    results_in=ResultsIn.ITEMS,
    first_is_user=False,
    ids=Ids(pattern=r"[!-~]{1,64}", longest=64),
    reasoning=Reasoning.OPTIONAL,
    reasoning_formats=frozenset({"openai-responses"}),
    result_order_free=True,
    families=FAMILIES,
)
