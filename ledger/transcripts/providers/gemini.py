"""Gemini. Source: transcripts, part a, and the vendor's pages on function calling."""

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal, ResultsIn
from ledger.transcripts.shapes.gemini import SIGNATURE, Gemini

PROFILE = Profile(
    name="gemini",
    shape=Gemini(),
    refusals={
        "count_mismatch": Refusal(
            "Please ensure that the number of function response parts is equal to the number of "
            "function call parts of the function call turn."
        ),
        "first_not_user": Refusal(
            "Please ensure that function call turn comes immediately after a user turn or after a "
            "function response turn."
        ),
        "result_not_adjacent": Refusal(
            "Please ensure that function response turn comes immediately after a function call "
            "turn.",
            "S",
        ),
        "reasoning_missing": Refusal(
            "Function call is missing a thought_signature in functionCall parts. This is required "
            "for tools to work correctly, and missing thought_signature may lead to degraded model "
            "performance."
        ),
    },
    results_in=ResultsIn.TOGETHER,
    result_role="user",
    text_beside_results=False,
    ids=Ids(pattern=r"[^\x00-\x1f]+", longest=0, scope="step"),
    reasoning=Reasoning.WITH_CALLS,
    reasoning_formats=frozenset({"gemini"}),
    signatures=frozenset(SIGNATURE),
    calls_follow_user=True,
    arguments_as_text=False,
    system_apart=True,
    system_leads=True,
)
