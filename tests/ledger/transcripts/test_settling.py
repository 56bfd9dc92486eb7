"""One result for each call, and where peers decide otherwise: T17, T18."""

import json

import pytest

from ledger import notices
from ledger.transcripts.blocks import Piece
from ledger.transcripts.neutral import Result, Text
from ledger.transcripts.told import is_notice
from tests.ledger.transcripts.chat import asked, call, got, kinds, mend, recorded, replied, said

UNRECORDED = notices.TEMPLATES["unrecorded"]
OPEN = [said(), asked("a", "b"), got("a", "one")]


def _result(repaired, label):
    return next(m["content"] for m in repaired.body if m.get("tool_call_id") == label)


def test_a_dangling_call_is_closed_and_not_removed():
    repaired = mend([*OPEN, said()])

    assert _result(repaired, "b") == UNRECORDED
    (change,) = repaired.report.changes[:1]
    assert (change.kind, change.delivery, change.template) == (
        "synthesized",
        "notice",
        "unrecorded",
    )


def test_a_dangling_call_is_dropped_only_where_that_is_chosen():
    repaired = mend([*OPEN, said()], unanswered="drop")

    assert (repaired.report.after.calls, repaired.report.after.results) == (1, 1)


def test_the_last_step_stays_open_for_a_caller_that_runs_it():
    assert mend(OPEN, frontier="open").body is OPEN
    assert kinds(mend(OPEN)) == ["synthesized"]


def test_an_earlier_step_is_closed_even_where_the_last_stays_open():
    repaired = mend([*OPEN, said(), asked("c")], frontier="open")

    assert kinds(repaired)[0] == "synthesized"
    assert repaired.body[-1] == asked("c")


def test_the_ledger_s_result_closes_a_call_before_any_notice():
    repaired = mend([*OPEN, said()], known=[recorded(1, "b", "two")])

    assert _result(repaired, "b") == "two"
    assert [(c.kind, c.delivery) for c in repaired.report.changes][0] == ("replayed", "replayed")


@pytest.mark.parametrize(
    ("template", "delivery"), [("ambiguous", "notice"), ("partial", "partial")]
)
def test_a_call_without_result_is_told_what_the_ledger_knows(template, delivery):
    told = notices.TEMPLATES[template]
    known = recorded(1, "b", None, notice=told, template=template)

    repaired = mend([*OPEN, said()], known=[known])

    assert _result(repaired, "b") == told
    assert repaired.report.changes[0].delivery == delivery


def test_a_person_s_statement_stands_before_the_transcript_s_result():
    known = recorded(1, "b", notices.TEMPLATES["denied_stated"], delivery="operator-stated")

    repaired = mend([*OPEN, said(), got("b", "late")], known=[known])

    assert _result(repaired, "b") == notices.TEMPLATES["denied_stated"]
    assert repaired.report.changes[0].differs is True


def test_a_result_in_its_place_is_kept_where_the_ledger_s_differs():
    transcript = [said(), asked("a"), got("a", "shortened"), replied()]

    repaired = mend(transcript, known=[recorded(1, "a", "the whole text")])

    assert repaired.body is transcript
    assert (kinds(repaired), repaired.report.changed) == (["differs"], False)


def test_a_notice_that_nobody_read_gives_way_to_the_result():
    transcript = [said(), asked("a"), got("a", UNRECORDED), said("And?"), got("a", "one")]

    repaired = mend(transcript)

    assert _result(repaired, "a") == "one"
    assert kinds(repaired) == ["notice_replaced", "duplicate_dropped"]


def test_a_notice_that_was_read_stays_and_is_corrected_behind():
    transcript = [said(), asked("a"), got("a", UNRECORDED), replied(), said("And?")]
    known = [recorded(1, "a", "one")]

    repaired = mend(transcript, known=known)

    assert repaired.body[:4] == transcript[:4]
    assert "Now known: one" in json.dumps(repaired.body[4])
    assert kinds(repaired)[0] == "corrected"
    assert mend(repaired.body, known=known).body is repaired.body


def test_a_correction_stands_though_the_reply_that_had_read_the_notice_is_gone():
    nameless = asked(call(None, name=""))
    known = [recorded(1, "a", "one")]

    repaired = mend([said(), asked("a"), got("a", UNRECORDED), nameless], known=known)

    assert "corrected" in kinds(repaired)
    assert mend(repaired.body, known=known).body is repaired.body


def test_a_notice_that_was_read_is_replaced_for_an_import():
    transcript = [said(), asked("a"), got("a", UNRECORDED), replied(), said("And?")]

    repaired = mend(transcript, known=[recorded(1, "a", "one")], late_results="in_place")

    assert _result(repaired, "a") == "one"


def test_a_late_result_of_the_transcript_is_told_once_as_a_correction():
    transcript = [said(), asked("a"), got("a", "(interrupted)"), replied(), got("a", "one"), said()]

    repaired = mend(transcript, notices=["(interrupted)"])

    assert json.dumps(repaired.body).count("Now known: one") == 1
    assert _result(repaired, "a") == "(interrupted)"
    assert repaired.report.dropped == 1


@pytest.mark.parametrize("text", ["Error: denied by policy", f"{UNRECORDED} It rained.", ""])
def test_a_real_error_or_a_denial_is_a_result(text):
    transcript = [said(), asked("a"), got("a", text), said("And?")]

    assert mend(transcript, known=[recorded(1, "a", "one")]).body is transcript


def test_an_unrecorded_call_of_a_failed_reply_is_not_sent():
    transcript = [said(), asked("a", text="I will", finish_reason="error"), said("Well?")]

    repaired = mend(transcript)

    assert [m["content"] for m in repaired.body] == ["Go on.", "I will", "Well?"]


def test_a_recorded_call_of_a_failed_reply_is_settled_like_any_other():
    transcript = [said(), asked("a", finish_reason="error"), said("Well?")]

    repaired = mend(transcript, known=[recorded(1, "a", "one")])

    assert _result(repaired, "a") == "one"


def test_results_that_were_there_when_the_user_interrupted_are_kept():
    repaired = mend([*OPEN, said("Stop!"), replied()])

    assert (_result(repaired, "a"), _result(repaired, "b")) == ("one", UNRECORDED)


def test_a_repeated_prompt_is_reported_and_kept():
    repaired = mend([said("Pay"), said("Pay"), asked("a"), said("Well?")])

    assert [m["content"] for m in repaired.body][:2] == ["Pay", "Pay"]
    assert "prompt_repeated" in kinds(repaired)


@pytest.mark.parametrize("template", sorted(notices.TEMPLATES))
def test_t18_every_template_without_a_result_in_it_is_known_as_a_notice(template):
    text = notices.TEMPLATES[template].replace("{", "").replace("}", "")
    carries = template in (*notices.OPERATOR_STATED, "edited", "twin_done", "failed_after_effect")

    assert is_notice(Result("a", (Text(text),))) is not carries


def test_t18_a_notice_carries_the_error_flag_of_its_format():
    repaired = mend([*OPEN, said()], "anthropic")

    closed = repaired.body[2]["content"][1]
    assert (closed["content"], closed["is_error"]) == (UNRECORDED, True)
    assert Piece(Text(UNRECORDED)).at == -1
