"""The checker on planted worlds: what is wrong is found, and what nobody can know is not."""

from dataclasses import replace
from typing import Any

import pytest

from drills.checker import Answered, LedgerCall, findings
from drills.report import Finding
from drills.world import Seen, marker_of
from sandbox.marks import digest

CALL, OTHER = "a" * 32, "b" * 32
NOTHING = Seen(mails={}, payments={}, renders={}, runs={}, artifacts={})
MAIL = LedgerCall(
    id=CALL, key="k", tool="sandbox.send_mail", recovery_class="side_effect", arguments={},
    state="succeeded", effect="happened", settled=True,
)  # fmt: skip
WRITE = replace(
    MAIL, tool="sandbox.write_artifact", recovery_class="idempotent_write",
    arguments={"path": "a.txt", "text": "whole"},
)  # fmt: skip
LOOKUP = replace(
    MAIL, tool="sandbox.lookup", recovery_class="read_only", effect="none",
    arguments={"name": "address"}, result='{"entry": "wrong"}',
)  # fmt: skip


def sent(times: int, call: str = CALL) -> Seen:
    return replace(NOTHING, mails={digest(marker_of(call)): times})


def kinds(found: list[Finding]) -> list[str]:
    return [finding.kind for finding in found]


def judged(call: LedgerCall, seen: Seen, *answered: Answered) -> list[str]:
    return kinds(findings(answered, [call], seen))


def test_a_mail_that_was_sent_once_and_is_called_sent_is_right() -> None:
    assert judged(MAIL, sent(1)) == []


def test_a_mail_that_is_there_twice_is_doubled() -> None:
    assert judged(MAIL, sent(2)) == ["doubled"]


def test_a_mail_that_is_called_sent_and_is_not_there_is_a_false_success() -> None:
    assert judged(MAIL, NOTHING) == ["false_success"]


@pytest.mark.parametrize("state", ["failed", "expired", "cancelled", "succeeded"])
@pytest.mark.parametrize("effect", ["not_begun", "did_not_happen"])
def test_a_mail_that_is_there_and_is_denied_is_a_false_failure(state: str, effect: str) -> None:
    assert judged(replace(MAIL, state=state, effect=effect), sent(1)) == ["false_failure"]


@pytest.mark.parametrize("times", [0, 1])
def test_a_call_that_a_person_gave_up_says_nothing_that_could_be_false(times: int) -> None:
    given_up = replace(MAIL, state="abandoned", effect="possible")
    assert judged(given_up, sent(times)) == []


def test_a_call_that_is_still_open_is_stuck() -> None:
    open_ = replace(MAIL, state="ambiguous", effect="possible", settled=False)
    assert judged(open_, sent(1)) == ["stuck"]


def test_a_file_that_is_whole_is_right() -> None:
    assert judged(WRITE, replace(NOTHING, artifacts={"a.txt": b"whole"})) == []


def test_a_file_that_is_not_whole_is_half_written() -> None:
    assert judged(WRITE, replace(NOTHING, artifacts={"a.txt": b"wh"})) == ["half_written"]


def test_a_file_that_is_called_written_and_is_not_there_is_a_false_success() -> None:
    assert judged(WRITE, NOTHING) == ["false_success"]


def test_a_read_that_answers_something_else_is_a_false_success() -> None:
    assert judged(LOOKUP, NOTHING) == ["false_success"]


def test_a_read_that_does_not_find_what_is_there_is_a_false_failure() -> None:
    assert judged(replace(LOOKUP, state="failed", cause="not_found"), NOTHING) == ["false_failure"]


def test_an_accepted_call_that_the_ledger_does_not_have_is_lost() -> None:
    accepted = Answered("k", frozenset({f"call_{OTHER}"}))
    assert judged(MAIL, sent(1), accepted) == ["lost"]


def test_a_key_with_two_calls_is_doubled() -> None:
    twice = [MAIL, replace(MAIL, id=OTHER)]
    seen = replace(NOTHING, mails={digest(marker_of(call)): 1 for call in (CALL, OTHER)})
    assert kinds(findings([], twice, seen)) == ["doubled"]


def test_a_key_that_was_taken_for_other_arguments_is_found() -> None:
    assert judged(MAIL, sent(1), Answered("k", reuse_accepted=True)) == ["key_reused"]


def test_an_effect_of_a_call_that_the_ledger_does_not_know_is_unrecorded() -> None:
    seen = replace(NOTHING, mails={digest(marker_of(CALL)): 1, digest(marker_of(OTHER)): 1})
    assert kinds(findings([], [MAIL], seen)) == ["unrecorded"]


def test_a_row_of_the_desk_is_read_as_a_call() -> None:
    row: dict[str, Any] = {
        "id": CALL, "key": None, "tool": "sandbox.tally", "recovery_class": "read_only",
        "arguments": {}, "state": "succeeded", "effect": "none", "settled": True, "cause": "",
        "reason": "", "result": "{}", "session": None, "settled_at": 2.0,
        "attempts": [{"fence": 1}], "events": [["recorded", 1.0, 0]],
    }  # fmt: skip
    call = LedgerCall.of(row)
    assert (call.key, call.events) == ("", (("recorded", 1.0, 0),))
    assert judged(call, NOTHING) == ["false_success"]
    assert judged(call, replace(NOTHING, runs={CALL: 1})) == []
