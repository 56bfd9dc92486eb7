"""The bricked conversation: its numbers, what providers say to it, and that one repair mends it."""

import pytest

from ledger.transcripts.counting import count
from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.validation import check
from tests.ledger.transcripts.bricked import CALLS, ORPHANS, REPEATED, RESULTS, bricked
from tests.ledger.transcripts.chat import kinds, mend


def test_the_report_counts_what_was_found():
    before = mend(bricked()).report.before

    assert (before.calls, before.results) == (CALLS, RESULTS)
    assert (before.orphans, before.prompts_repeated) == (len(ORPHANS), REPEATED)
    assert (before.displaced, before.unanswered, before.duplicates) == (1, 1, 0)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (
            "openai-responses",
            "No tool call found for function call output with call_id call_37ac.",
        ),
        (
            "deepseek",
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
        ),
        ("minimax", "invalid params, tool call result does not follow tool call (2013)"),
    ],
)
def test_the_refusals_are_foretold_in_the_providers_words(target, words):
    predicted = mend(bricked(), target).report.predicted

    assert words in [violation.text for violation in predicted]


def test_openai_responses_refuses_the_three_orphans_alone():
    predicted = mend(bricked(), "openai-responses").report.predicted

    assert [each.provider_id for each in predicted] == list(ORPHANS)


@pytest.mark.parametrize("target", sorted(profiles()))
def test_one_repair_makes_it_usable_for_every_provider(target):
    repaired = mend(bricked(), target)

    assert check(repaired.entries, profile(target)) == []
    after = count(repaired.entries, profile(target).shape)
    assert (after.calls, after.results, after.orphans) == (32, 32, 0)


def test_the_orphans_are_named_and_the_prompt_is_kept():
    repaired = mend(bricked())

    assert kinds(repaired) == ["orphan_dropped"] * 3 + ["moved", "prompt_repeated"]
    assert repaired.report.after.prompts_repeated == 1
    causes = {each.cause: each.certainty for each in repaired.report.diagnosis}
    assert causes["reply_lost_results_kept"] == causes["prompt_submitted_twice"] == "hypothesis"
