"""Reasoning, layout, ids and caps: T19 to T22."""

import hashlib
import re

import pytest

from ledger.transcripts.caps import CapTooSmall, cut
from ledger.transcripts.layout import BETWEEN, OPENING, lay_out
from ledger.transcripts.profiles import profile
from ledger.transcripts.repair import repair
from ledger.transcripts.validation import check
from tests.ledger.transcripts.chat import asked, call, got, kinds, mend, replied, said

THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def _used(label, *before):
    return {
        "role": "assistant",
        "content": [*before, {"type": "tool_use", "id": label, "name": "read", "input": {}}],
    }


def _result(label, text="118.00"):
    block = {"type": "tool_result", "tool_use_id": label, "content": text}
    return {"role": "user", "content": [block]}


def _anthropic(*messages, target="anthropic", **options):
    return repair(list(messages), format="anthropic", profile=profile(target), **options)


def test_t19_a_step_without_the_demanded_signature_is_told_as_text():
    repaired = _anthropic(
        said(), _used("a"), _result("a", "two"), _used("b", THINKING), _result("b")
    )

    assert kinds(repaired) == ["step_folded"]
    assert repaired.body[2]["content"][0] == THINKING
    told = repaired.body[1]["content"]
    assert told.startswith("Earlier tool call, told as text: read with {}. Its result: two")
    assert repaired.report.after.results == 1 == repaired.report.before.results - 1


def test_t19_results_in_another_order_are_told_with_their_own_calls():
    both = {"role": "assistant", "content": [*_used("a")["content"], *_used("b")["content"]]}
    results = [*_result("b", "of b")["content"], *_result("a", "of a")["content"]]

    repaired = _anthropic(
        said(), both, {"role": "user", "content": results}, _used("c", THINKING), _result("c")
    )

    assert kinds(repaired) == ["step_folded"]
    assert re.findall(r"Its result: (of .)", str(repaired.body[1])) == ["of a", "of b"]


def test_t19_a_dropped_call_takes_the_reasoning_that_led_only_to_it():
    half = {"role": "assistant", "content": [THINKING, {"type": "tool_use", "id": "a"}]}

    repaired = _anthropic(said(), half, said("And?"))

    assert kinds(repaired) == ["call_dropped", "reasoning_dropped"]
    assert [m["content"] for m in repaired.body] == ["Go on.", "And?"]


def test_t19_reasoning_of_one_provider_is_not_sent_to_another():
    repaired = _anthropic(said(), _used("a", THINKING), _result("a"), target="gemini")

    assert "Hm." not in str(repaired.body)
    assert kinds(repaired) == ["reasoning_dropped"]


def test_t20_results_stand_together_in_the_order_of_their_calls_before_any_text():
    transcript = [said(), asked("a", "b"), got("b", "two"), said("And?"), got("a", "one")]

    body = mend(transcript, "anthropic").body

    assert [block["content"] for block in body[2]["content"]] == ["one", "two"]
    assert body[3] == {"role": "user", "content": "And?"}


def test_t20_the_user_opens_and_a_reply_stands_between_where_that_is_demanded():
    transcript = [asked("a"), got("a"), said("And?")]

    body = mend(transcript, "bedrock").body

    assert [message["role"] for message in body] == ["user", "assistant"] * 2 + ["user"]
    assert (body[0]["content"][0]["text"], body[3]["content"][0]["text"]) == (OPENING, BETWEEN)


def test_t20_text_goes_before_the_calls():
    late = {"role": "assistant", "content": [*_used("a")["content"], {"type": "text", "text": "I"}]}

    repaired = _anthropic(said(), late, _result("a"))

    assert [block["type"] for block in repaired.body[1]["content"]] == ["text", "tool_use"]
    assert kinds(repaired) == ["text_moved"]


def test_t20_layout_of_a_laid_out_conversation_is_itself():
    target = profile("anthropic")
    once = lay_out(mend([said(), asked("a", "b"), got("a"), got("b")]).entries, target)

    assert lay_out(once, target) == once
    assert check(once, target) == []


def test_t21_ids_are_rewritten_in_call_and_result_alike():
    odd = ["c:blue", "c_blue", "x" * 70]
    transcript = [said(), asked(*odd), *(got(label, label) for label in odd)]

    repaired = mend(transcript, "anthropic")

    ids = [block["id"] for block in repaired.body[1]["content"]]
    assert [block["tool_use_id"] for block in repaired.body[2]["content"]] == ids
    assert ids[1] == "c_blue"
    assert len(set(ids)) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,70}", each) for each in ids)
    assert [(r.step, r.index, r.was, r.now) for r in repaired.report.ids] == [
        (0, 0, "c:blue", ids[0])
    ]


def test_t21_the_first_bearer_keeps_a_repeated_id():
    transcript = [said(), asked("0"), got("0", "one"), asked("0"), got("0", "two")]

    repaired = mend(transcript, "anthropic")

    assert repaired.body[1]["content"][0]["id"] == "0"
    assert repaired.body[3]["content"][0]["id"] != "0"
    assert len(repaired.report.ids) == 1


def test_t21_mistral_is_sent_nine_letters_and_digits():
    body = mend(
        [said(), asked("call_with_a_long_name"), got("call_with_a_long_name")], "mistral"
    ).body

    (sent,) = body[1]["tool_calls"]
    assert re.fullmatch("[A-Za-z0-9]{9}", sent["id"])
    assert body[2]["tool_call_id"] == sent["id"]


def test_t22_a_result_over_the_cap_is_head_and_tail_with_a_marker():
    text = "ä" * 1000
    transcript = [said(), asked("a"), got("a", text)]

    repaired = mend(transcript, cap_bytes=600)

    sent = repaired.body[2]["content"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    left_out = 2000 - 2 * sent.count("ä")
    assert len(sent.encode()) <= 600
    assert f"[truncated: {left_out} of 2000 bytes left out, sha256:{digest}]" in sent
    assert kinds(repaired) == ["result_capped"]
    assert mend(repaired.body, cap_bytes=600).body is repaired.body
    assert transcript[2]["content"] == text


@pytest.mark.parametrize("cap_bytes", [512, 513, 700, 4096])
def test_t22_a_cut_is_never_longer_than_the_cap(cap_bytes):
    assert len(cut("äß€" * 4000, cap_bytes).encode()) <= cap_bytes


def test_t22_a_cap_without_room_is_refused():
    with pytest.raises(CapTooSmall, match="at least 512 bytes"):
        mend([said(), asked("a"), got("a", "x" * 900)], cap_bytes=100)


def test_an_empty_list_of_calls_is_left_out():
    repaired = mend([said(), {**replied(), "tool_calls": []}, said("And?")])

    assert repaired.body[1] == replied()
    assert repaired.report.changed is True


def test_a_call_in_a_message_of_the_user_is_no_call():
    wrong = {"role": "user", "content": "Pay", "tool_calls": [call("a")]}

    repaired = mend([wrong])

    assert repaired.report.after.calls == 0
    assert repaired.body[0]["content"] == "Pay"
