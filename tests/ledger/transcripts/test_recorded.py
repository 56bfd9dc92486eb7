"""The sent copy differs in nothing that the report does not name (T6)."""

from ledger.transcripts.profiles import profile
from ledger.transcripts.repair import repair
from tests.ledger.transcripts.chat import asked, got, kinds, mend, replied, said

ODD = {"type": "input_form", "form": {"fields": []}}


def _changes(repaired, kind):
    return [
        (change.from_at, change.reason) for change in repaired.report.changes if change.kind == kind
    ]


def test_a_part_that_another_form_cannot_hold_is_named():
    told = {"role": "user", "content": [{"type": "text", "text": "Look."}, ODD]}

    repaired = mend([said("Hello."), replied(), told], "anthropic")

    assert _changes(repaired, "part_dropped") == [(2, "of_another_form")]
    assert "input_form" not in str(repaired.body)


def test_the_form_that_a_part_is_of_keeps_it_and_reports_nothing():
    told = {"role": "user", "content": [{"type": "text", "text": "Look."}, ODD]}

    assert kinds(mend([told])) == []


def test_an_empty_text_that_leaves_is_named():
    blocks = [{"type": "text", "text": "  "}, {"type": "text", "text": "Hello."}]
    own = profile("anthropic")

    repaired = repair([{"role": "user", "content": blocks}], format="anthropic", profile=own)

    assert _changes(repaired, "empty_dropped") == [(0, "empty_text")]
    assert repair(repaired.body, format="anthropic", profile=own).report.changes == []


def test_an_empty_text_in_a_result_is_named_with_its_call():
    repaired = mend([said(), asked("a"), got("a", "  ")], "anthropic")

    (change,) = repaired.report.changes[-1:]
    assert (change.kind, change.provider_id, change.to) == ("empty_dropped", "a", 2)


def test_an_empty_list_of_calls_that_leaves_is_named():
    repaired = mend([said(), {**replied(), "tool_calls": []}, said("And?")])

    assert _changes(repaired, "members_dropped") == [(1, "empty_calls")]
    assert kinds(mend(repaired.body)) == []


def test_an_item_s_own_id_that_leaves_is_named():
    items = [
        {"type": "message", "role": "user", "content": "Look."},
        {"type": "function_call", "id": "call_9", "call_id": "a", "name": "r", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "ok"},
    ]
    own = profile("openai-responses")

    repaired = repair(items, format="openai-responses", profile=own)

    assert _changes(repaired, "members_dropped") == [(1, "item_id")]
    assert repair(repaired.body, format="openai-responses", profile=own).report.changes == []


def test_results_that_come_in_another_order_are_named():
    transcript = [said(), asked("a", "b"), got("b", "second"), got("a", "first")]

    repaired = mend(transcript, "openai-compatible")

    assert _changes(repaired, "moved") == [(3, "call_order"), (2, "call_order")]
    assert [m["content"] for m in repaired.body[2:4]] == ["first", "second"]


def test_results_whose_order_is_free_stay_in_theirs():
    transcript = [said(), asked("a", "b"), got("b"), got("a")]

    assert kinds(mend(transcript, "openai-chat")) == []
