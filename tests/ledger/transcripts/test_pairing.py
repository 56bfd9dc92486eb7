"""Which result answers which call: T11 to T16."""

from tests.ledger.transcripts.chat import (
    asked,
    call,
    got,
    kinds,
    mend,
    recorded,
    replied,
    said,
    whole_reply,
)


def _texts(repaired):
    return [m["content"] for m in repaired.body if m["role"] == "tool"]


def test_t11_ids_that_begin_anew_in_each_reply_are_matched_per_step():
    transcript = [said(), asked("0"), got("0", "one"), asked("0"), got("0", "two"), said()]

    assert mend(transcript).body is transcript


def test_t12_equal_ids_in_one_step_take_their_results_in_order():
    transcript = [said(), asked("0", "0"), got("0", "one"), got("0", "two"), said()]

    mended = mend(transcript, "anthropic").body

    results = mended[2]["content"]
    assert [each["content"] for each in results] == ["one", "two"]
    assert [each["tool_use_id"] for each in results] == [
        each["id"] for each in mended[1]["content"]
    ]


def test_t13_results_behind_a_failed_reply_are_its_own():
    broken_off = asked("0", text="Let me see", finish_reason="error")

    repaired = mend([said(), broken_off, got("0", "one"), asked("0"), said()])

    assert [each.reason for each in repaired.report.changes][:2] == ["failed_reply"] * 2
    assert "one" not in _texts(repaired)
    assert repaired.body[1]["content"] == "Let me see"


def test_t14_a_result_behind_the_user_s_words_is_moved_to_its_call():
    repaired = mend([said(), asked("a"), said("Hello?"), got("a", "one"), replied()])

    assert [m["role"] for m in repaired.body] == ["user", "assistant", "tool", "user", "assistant"]
    (moved,) = repaired.report.changes
    assert (moved.kind, moved.from_at, moved.to) == ("moved", 3, 2)


def test_t14_a_result_that_two_calls_could_own_goes_to_neither():
    transcript = [said(), asked("0"), said(), asked("0"), said(), got("0", "one")]

    repaired = mend(transcript)

    assert "one" not in _texts(repaired)
    assert [(c.kind, c.reason) for c in repaired.report.changes][0] == (
        "orphan_dropped",
        "ambiguous",
    )
    assert kinds(repaired).count("synthesized") == 2


def test_t14_a_result_whose_nearest_bearer_is_answered_is_not_given_to_an_earlier_call():
    transcript = [said(), asked("0"), said(), asked("0"), got("0", "two"), said(), got("0", "x")]

    repaired = mend(transcript)

    assert _texts(repaired)[1] == "two"
    assert "x" not in _texts(repaired)


def test_t14_a_call_of_a_failed_reply_counts_as_an_owner():
    broken_off = asked("0", finish_reason="aborted")

    repaired = mend([said(), broken_off, said(), got("0", "one"), replied()])

    assert {c.reason for c in repaired.report.changes} == {"failed_reply"}
    assert _texts(repaired) == []


def test_t14_a_result_never_pairs_with_a_later_call():
    repaired = mend([said(), got("a", "early"), asked("a"), said()])

    assert "early" not in _texts(repaired)
    assert kinds(repaired) == ["orphan_dropped", "synthesized"]


def test_t15_of_two_results_the_first_is_sent_and_the_record_says_whether_they_differ():
    transcript = [said(), asked("a"), got("a", "one"), got("a", "one"), got("a", "two"), said()]

    repaired = mend(transcript)

    assert _texts(repaired) == ["one"]
    assert [(c.kind, c.differs) for c in repaired.report.changes] == [
        ("duplicate_dropped", False),
        ("duplicate_dropped", True),
    ]


def test_t15_of_two_results_the_recorded_one_is_sent():
    transcript = [said(), asked("a"), got("a", "one"), got("a", "two"), said()]

    repaired = mend(transcript, known=[recorded(1, "a", "two")])

    assert _texts(repaired) == ["two"]


def test_t16_an_orphan_goes_behind_the_call_that_the_ledger_names():
    known = [recorded(1, "0", "one"), recorded(2, "0", "two")]
    first = asked(call("0", arguments='{"order":4711}'))
    transcript = [said(), first, said(), first, said(), got("0", "two")]

    repaired = mend(transcript, known=known)

    assert _texts(repaired) == ["one", "two"]
    assert sorted(kinds(repaired)) == ["relinked", "replayed"]


def test_t16_a_lost_reply_that_the_ledger_holds_whole_is_restored():
    known = whole_reply(recorded(1, "a", "one"), recorded(2, "b", "two"))

    repaired = mend([said(), got("a", "one"), got("b", "two"), said("Well?")], known=known)

    assert [m["role"] for m in repaired.body] == ["user", "assistant", "tool", "tool", "user"]
    assert kinds(repaired) == ["call_restored"] * 2 + ["relinked"] * 2
    assert repaired.report.after.calls == repaired.report.after.results == 2


def test_t16_a_lost_reply_that_the_ledger_holds_in_part_is_not():
    repaired = mend([said(), got("a", "one"), said("Well?")], known=[recorded(1, "a", "one")])

    assert kinds(repaired) == ["orphan_dropped"]
