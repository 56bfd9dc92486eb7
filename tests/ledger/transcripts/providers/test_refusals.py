"""Each rule of each provider: the smallest transcript that breaks it, in the provider's words."""

from typing import Any

import pytest

from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.repair import Unrepairable, repair
from ledger.transcripts.validation import check
from tests.ledger.transcripts.conversations import CONVERSATIONS
from tests.ledger.transcripts.providers.broken import BROKEN, Broken

SAME_RULES = {"minimax-messages": "minimax", "neutral": "openai-compatible"}
"""Profiles whose rules are told once, by the profile that has them first."""

EACH = pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
OWN = sorted(set(profiles()) - {"openai-chat"})


def _around(transcript: Any) -> Any:
    return transcript if isinstance(transcript, dict) else None


def _faults(name: str, transcript: Any) -> list[tuple[str, str]]:
    target = profile(name)
    entries = target.shape.read(transcript)
    return [(each.code, each.text) for each in check(entries, target, around=_around(transcript))]


@pytest.mark.parametrize("name", OWN)
def test_every_code_of_a_provider_is_broken_once(name):
    tried = {broken.code for broken in BROKEN if broken.profile == name}
    told = {broken.code for broken in BROKEN if broken.profile == SAME_RULES.get(name)}

    assert set(profile(name).refusals) - told == tried - told


@EACH
def test_the_broken_rule_is_named_in_the_provider_s_words(broken: Broken):
    assert _faults(broken.profile, broken.transcript) == [(broken.code, broken.text)]


@EACH
def test_what_was_mended_breaks_no_rule(broken: Broken):
    target = profile(broken.profile)
    if not broken.mendable:
        with pytest.raises(Unrepairable) as refused:
            repair(broken.transcript, format=broken.profile, profile=target)
        assert [each.code for each in refused.value.violations] == [broken.code]
        return

    repaired = repair(broken.transcript, format=broken.profile, profile=target)

    assert _faults(broken.profile, repaired.body) == []
    assert repaired.report.to_json()["changed"] is True


@pytest.mark.parametrize("name", sorted(profiles()))
def test_a_sound_conversation_breaks_no_rule(name):
    assert _faults(name, CONVERSATIONS[name]) == []


OWN_IDS = {
    "message": ({"type": "message", "id": "rs_1", "role": "assistant", "content": "Yes."}, "msg"),
    "reasoning": ({"type": "reasoning", "id": "msg_1", "summary": []}, "rs"),
    "custom_tool_call": (
        {
            "type": "custom_tool_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "a",
            "input": "",
        },
        "ctc",
    ),
}


@pytest.mark.parametrize("kind", sorted(OWN_IDS))
def test_the_own_id_of_an_item_begins_as_its_type_demands(kind):
    item, family = OWN_IDS[kind]
    target = profile("openai-responses")

    faults = [each for each in check(target.shape.read([item]), target) if "ID" in each.text]

    assert [each.text for each in faults] == [
        f"Invalid 'input[0].id': '{item['id']}'. Expected an ID that begins with '{family}'."
    ]


def test_mistral_takes_no_system_text_behind_a_reply():
    messages = [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "Yes."},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "And?"},
    ]

    assert _faults("mistral", messages) == [
        ("roles_not_alternating", "Unexpected role 'system' after role 'assistant'")
    ]


def test_a_mark_beside_results_is_no_text():
    results = [
        {"toolResult": {"toolUseId": "t_1", "content": [{"text": "ok"}]}},
        {"cachePoint": {"type": "default"}},
    ]
    messages = [
        {"role": "user", "content": [{"text": "Go on."}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t_1", "name": "a"}}]},
        {"role": "user", "content": results},
    ]

    assert _faults("bedrock", messages) == []


def test_a_reply_to_be_continued_may_stand_last_at_mistral():
    orphan = {"role": "tool", "tool_call_id": "abcDEF123", "content": "ok"}
    begun = {"role": "assistant", "content": "The total is", "prefix": True}
    messages = [{"role": "user", "content": "And?"}, begun]
    target = profile("mistral")

    repaired = repair([orphan, *messages], format="mistral", profile=target)

    assert _faults("mistral", messages) == []
    assert repaired.body == messages
