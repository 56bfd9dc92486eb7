"""The ground rules and the reading of repair: T1 to T10 and T23, T24."""

import copy
import json

import pytest

from ledger.transcripts.neutral import Unreadable
from ledger.transcripts.profiles import UnknownProfile, profile, profiles
from ledger.transcripts.repair import Unrepairable, repair
from tests.ledger.transcripts.chat import asked, call, got, kinds, mend, replied, said
from tests.ledger.transcripts.conversations import CONVERSATIONS

BROKEN = [said(), asked("a", "b"), got("b"), said("And?"), got("a"), got("gone"), replied()]


@pytest.mark.parametrize("name", sorted(profiles()))
def test_t1_a_sound_conversation_is_the_very_object_that_came(name):
    conversation = CONVERSATIONS[name]

    repaired = repair(conversation, format=name, profile=profile(name))

    assert repaired.body is conversation
    assert (repaired.report.changed, kinds(repaired)) == (False, [])


def test_t1_the_order_of_parallel_results_is_kept():
    transcript = [said(), asked("a", "b"), got("b"), got("a"), replied()]

    assert mend(transcript).body is transcript


def test_t2_what_nothing_touched_keeps_its_bytes_in_a_mended_conversation():
    odd = {"content": "Hello", "role": "user", "name": "olga", "x-shown": [1]}
    free = [asked("c", "d"), got("d"), got("c")]

    mended = mend([odd, *free, *BROKEN]).body

    assert [mended[0], *mended[1:4]] == [odd, *free]
    assert all(now is before for now, before in zip(mended, [odd, *free], strict=False))


def test_t2_mending_again_gives_the_same_and_says_nothing():
    mended = mend(BROKEN)

    again = mend(mended.body)

    assert json.dumps(again.body) == json.dumps(mended.body)
    assert (again.report.changed, kinds(again), list(again.report.ids)) == (False, [], [])


def test_t2_the_beginning_does_not_change_when_the_conversation_goes_on():
    longer = [*BROKEN, asked("c:blue"), got("c:blue"), asked("c:blue"), got("c:blue")]

    shorter = mend(BROKEN, "anthropic").body

    assert mend(longer, "anthropic").body[: len(shorter)] == shorter


def test_t4_the_original_is_left_alone():
    before = copy.deepcopy(BROKEN)

    mend(BROKEN, "mistral")

    assert before == BROKEN


def test_t5_every_result_goes_out_once_or_is_reported():
    report = mend(BROKEN).report

    assert report.after.results == report.before.results - report.dropped + report.inserted
    assert [each.kind for each in report.changes] == ["orphan_dropped", "moved"]
    assert report.changes[0].digest.startswith("sha256:")


def test_t6_the_sent_copy_says_nothing_of_repairs():
    told = json.dumps(mend(BROKEN).body)

    assert "repair" not in told.lower()
    assert "orphan" not in told.lower()


def test_t7_a_text_that_quotes_an_id_answers_nothing():
    repaired = mend([said(), asked("a"), said("a: 118.00")])

    assert kinds(repaired) == ["synthesized"]
    assert repaired.body[-1] == said("a: 118.00")


def test_t8_what_the_provider_ran_itself_is_neither_closed_nor_moved():
    searched = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]
    transcript = [
        said(),
        {"role": "assistant", "content": searched},
        said("And the order?"),
        {"role": "assistant", "content": [_use("a")]},
        said(),
    ]

    repaired = repair(transcript, format="anthropic", profile=profile("anthropic"))

    assert repaired.body[1] is transcript[1]
    assert kinds(repaired) == ["synthesized"]


def test_t9_what_is_for_the_screen_only_does_not_part_a_call_from_its_result():
    transcript = [
        {"role": "user", "text": "Go on."},
        {"role": "assistant", "calls": [{"id": "a", "name": "read", "arguments": {}}]},
        {"role": "user", "text": "The tool is running", "screen_only": True},
        {"role": "tool", "answers": "a", "text": "118.00"},
    ]

    repaired = repair(transcript, format="neutral", profile=profile("anthropic"))

    assert kinds(repaired) == []
    assert "running" not in json.dumps(repaired.body)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("", "{}"),
        ('{"order":47', '{"unparsed_arguments":"{\\"order\\":47"}'),
        ("[4711]", '{"unparsed_arguments":"[4711]"}'),
        ('"{\\"order\\":1}"', '{"order":1}'),
        ({"order": 1}, '{"order":1}'),
    ],
    ids=["empty", "cut off", "no object", "a text in a text", "an object"],
)
def test_t10_arguments_are_sent_as_the_text_of_an_object(given, sent):
    repaired = mend([said(), asked(call("a", arguments=given)), got("a"), said()])

    assert repaired.body[1]["tool_calls"][0]["function"]["arguments"] == sent
    assert kinds(repaired) == ["arguments_normalised"]


def test_t10_a_name_is_trimmed():
    repaired = mend([said(), asked(call("a", " find_order ")), got("a")])

    assert repaired.body[1]["tool_calls"][0]["function"]["name"] == "find_order"


@pytest.mark.parametrize(
    "half",
    [
        call(None),
        {"id": "a", "type": "function", "function": {"name": "read"}},
        call("a", "find {"),
    ],
    ids=["no id", "no arguments", "no name"],
)
def test_t10_half_of_a_call_is_dropped_with_its_reply(half):
    repaired = mend([said(), asked("b"), asked(half), got("b"), said("Still there?")])

    assert [message["role"] for message in repaired.body] == ["user", "assistant", "tool", "user"]
    assert kinds(repaired).count("call_dropped") == 1
    assert "moved" in kinds(repaired)  # the empty reply still ended the step before it


def test_t10_calls_of_tools_not_offered_are_dropped_with_their_results():
    transcript = [said(), asked(call("a", "read"), call("b", "write")), got("a"), got("b")]

    repaired = mend(transcript, offered_tools=["read"])

    assert repaired.report.after.calls == repaired.report.after.results == 1
    assert {each.reason for each in repaired.report.changes} == {"not_offered"}


def test_t23_what_would_still_be_refused_is_not_handed_out():
    request = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Go on."}]}]}
    used = {"toolUse": {"toolUseId": "a", "name": "read", "input": {}}}
    request["messages"].append({"role": "assistant", "content": [used]})

    with pytest.raises(Unrepairable) as refused:
        repair(request, format="bedrock", profile=profile("bedrock"))

    assert [each.code for each in refused.value.violations] == ["tools_not_declared"]
    assert refused.value.report.remaining == refused.value.violations


@pytest.mark.parametrize(
    ("transcript", "pointer"),
    [
        ("text", ""),
        ({"input": []}, "/messages"),
        ([said(), 7], "/1"),
        ([{"role": "wizard"}], "/0/role"),
        ([{"role": "user", "content": 7}], "/0/content"),
        ([{"role": "assistant", "tool_calls": {}}], "/0/tool_calls"),
        ([{"role": "assistant", "tool_calls": [1]}], "/0/tool_calls/0"),
    ],
)
def test_t24_what_cannot_be_read_is_refused_with_its_place(transcript, pointer):
    with pytest.raises(Unreadable) as refused:
        mend(transcript)

    assert refused.value.pointer == pointer


def test_t24_a_format_that_nobody_reads_is_refused_by_name():
    with pytest.raises(UnknownProfile) as refused:
        repair([], format="openai-chatt", profile=profile("anthropic"))

    assert "openai-chat" in refused.value.names


def _use(label: str) -> dict[str, object]:
    return {"type": "tool_use", "id": label, "name": "read", "input": {}}
