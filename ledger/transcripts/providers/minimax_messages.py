"""MiniMax, its endpoint in Anthropic's shape. Source: transcripts, part a."""

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal, ResultsIn
from ledger.transcripts.providers.minimax import NOT_BEHIND, REFUSALS
from ledger.transcripts.shapes.anthropic import Anthropic

PROFILE = Profile(
    name="minimax-messages",
    shape=Anthropic(name="minimax-messages"),
    refusals=REFUSALS | {"text_beside_result": Refusal(NOT_BEHIND, "S")},
    results_in=ResultsIn.TOGETHER,
    result_role="user",
    text_beside_results=False,
    ids=Ids(pattern=r"[A-Za-z0-9_-]{1,64}", longest=64),
    schema_at=("input_schema",),
    reasoning=Reasoning.OPTIONAL,
    reasoning_formats=frozenset({"minimax-messages"}),
    arguments_as_text=False,
    system_apart=True,
    system_leads=True,
)
