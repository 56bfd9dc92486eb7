"""An examination says what a repair would say, and mends nothing."""

from copy import deepcopy
from typing import Any

import pytest

from ledger.transcripts.examination import examine
from ledger.transcripts.neutral import Unreadable
from ledger.transcripts.profiles import UnknownProfile, profile, profiles
from ledger.transcripts.repair import Unrepairable, repair

ASKS = {
    "role": "assistant",
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    ],
}
ANSWERS = {"role": "tool", "tool_call_id": "call_1", "content": "nine to five"}
HELLO = {"role": "user", "content": "Hello."}
BROKEN: dict[str, list[dict[str, Any]]] = {
    "sound": [HELLO, ASKS, ANSWERS, HELLO],
    "orphan": [HELLO, ANSWERS, HELLO],
    "unanswered": [HELLO, ASKS, HELLO],
    "twice": [HELLO, ASKS, ANSWERS, ANSWERS, HELLO],
    "doubled": [HELLO, HELLO],
}


@pytest.mark.parametrize("name", sorted(profiles()))
@pytest.mark.parametrize("case", BROKEN)
def test_it_foretells_what_the_repair_for_each_provider_foretells(case: str, name: str) -> None:
    found = examine(BROKEN[case], format="openai-chat", profiles=[profile(name)])
    try:
        report = repair(BROKEN[case], format="openai-chat", profile=profile(name)).report
    except Unrepairable as refusal:
        report = refusal.report

    assert report is not None
    assert list(found.predicted[name]) == list(report.predicted)
    assert found.counts == report.before
    assert list(found.diagnosis) == list(report.diagnosis)


def test_it_changes_nothing_of_what_it_reads() -> None:
    transcript = deepcopy(BROKEN["twice"])

    examine(transcript, format="openai-chat", profiles=profiles().values())

    assert transcript == BROKEN["twice"]


def test_it_is_sound_only_where_no_provider_asked_would_refuse() -> None:
    asked = [profile("openai-chat"), profile("anthropic")]

    assert examine(BROKEN["sound"], format="openai-chat", profiles=asked).is_sound
    assert not examine(BROKEN["orphan"], format="openai-chat", profiles=asked).is_sound


def test_what_it_cannot_read_is_refused() -> None:
    with pytest.raises(Unreadable):
        examine([{"role": "nobody"}], format="openai-chat", profiles=[])
    with pytest.raises(UnknownProfile):
        examine([], format="esperanto", profiles=[])


def test_a_transcript_of_which_nothing_can_be_sent_is_examined_for_all() -> None:
    found = examine([], format="openai-chat", profiles=profiles().values())

    assert found.is_sound
    assert found.counts.entries == 0
