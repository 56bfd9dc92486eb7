"""What is wrong with a drill's sessions is found: calls left behind, owners, misplaced results."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from drills.checker import LedgerCall
from drills.report import Finding
from drills.session_checker import Compacted, HandedOver, Rendered, SessionsSeen, findings
from ledger import notices

FIRST, SECOND, THIRD = "1" * 32, "2" * 32, "3" * 32
CALL, OTHER = "a" * 32, "b" * 32
MAIL = LedgerCall(
    id=CALL, key="", tool="sandbox.send_mail", recovery_class="side_effect", arguments={"n": 1},
    state="succeeded", effect="happened", settled=True, result='{"to":"ada"}', session=FIRST,
    settled_at=9.0, events=(("recorded", 1.0, 0),),
)  # fmt: skip
COMPACTED = Compacted("c", FIRST, 5.0, (CALL,))
HANDED = HandedOver("h", FIRST, SECOND, 6.0, (CALL,))


def judged(
    *,
    compacted: Sequence[Compacted] = (),
    handed_over: Sequence[HandedOver] = (),
    told: dict[str, list[str]] | None = None,
    rendered: Sequence[Rendered] = (),
    call: LedgerCall = MAIL,
) -> list[str]:
    """The kinds of what is found; every session's transcript tells of the call by default."""
    told = {f"ses_{each}": [f"call_{CALL}"] for each in (FIRST, SECOND, THIRD)} | (told or {})
    seen = SessionsSeen(compacted=compacted, handed_over=handed_over)
    other = replace(call, id=OTHER, arguments={"n": 2}, result='{"to":"ben"}', settled_at=2.0)
    calls = {CALL: call, OTHER: other}
    found: list[Finding] = findings(seen, calls, rendered, told)
    return [finding.kind for finding in found]


def test_a_call_that_was_carried_over_and_told_of_is_not_lost() -> None:
    assert judged(compacted=[COMPACTED]) == []


def test_an_open_call_that_a_compaction_does_not_carry_is_lost() -> None:
    assert judged(compacted=[replace(COMPACTED, carried=())]) == ["lost_by_compaction"]


@pytest.mark.parametrize("settled_at", [4.0, None])
def test_only_what_was_open_at_its_instant_has_to_be_carried(settled_at: float | None) -> None:
    call = replace(MAIL, settled_at=settled_at)
    kinds = judged(compacted=[replace(COMPACTED, carried=())], call=call)
    assert kinds == ([] if settled_at else ["lost_by_compaction"])


def test_a_call_that_was_asked_for_later_has_not_to_be_carried() -> None:
    call = replace(MAIL, events=(("recorded", 5.5, 0),))
    assert judged(compacted=[replace(COMPACTED, carried=())], call=call) == []


def test_a_carried_call_that_no_transcript_tells_of_any_more_is_lost() -> None:
    told: dict[str, list[str]] = {f"ses_{FIRST}": []}
    assert judged(compacted=[COMPACTED], told=told) == ["lost_by_compaction"]


def test_a_call_belongs_to_who_took_it_over() -> None:
    onwards = HandedOver("i", SECOND, THIRD, 7.0, (CALL,))
    assert judged(handed_over=[HANDED, onwards], told={f"ses_{FIRST}": []}) == []


def test_a_compaction_of_the_receiver_has_to_carry_what_it_took_over() -> None:
    after = Compacted("c", SECOND, 7.0, ())
    assert judged(handed_over=[HANDED], compacted=[after]) == ["lost_by_compaction"]


def test_a_call_that_a_hand_off_left_behind_has_no_owner() -> None:
    assert judged(handed_over=[replace(HANDED, calls=())]) == ["no_owner"]


def test_a_call_that_its_receiver_was_never_told_of_has_no_owner() -> None:
    assert judged(handed_over=[HANDED], told={f"ses_{SECOND}": []}) == ["no_owner"]


def test_a_call_that_was_given_away_twice_has_two_owners() -> None:
    again = HandedOver("i", FIRST, THIRD, 7.0, (CALL,))
    assert judged(handed_over=[HANDED, again]) == ["two_owners"]


def a_render(content: str, **line: Any) -> Rendered:
    shown = {"call": f"call_{CALL}", "provider_id": "toolu_1", "kind": "real", "capped": False}
    asked = {"id": "toolu_1", "function": {"name": "send_mail", "arguments": '{"n":1}'}}
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "toolu_1", "content": content},
    ]
    return Rendered(f"ses_{FIRST}", messages, [shown | line])


def test_a_result_behind_its_own_call_is_right() -> None:
    assert judged(rendered=[a_render('{"to":"ada"}')]) == []


def test_a_result_behind_another_call_is_misplaced() -> None:
    assert judged(rendered=[a_render('{"to":"ben"}')]) == ["misplaced_result"]


def test_a_notice_is_nobodys_result() -> None:
    assert judged(rendered=[a_render("It is still under way.", kind="notice")]) == []


def corrected(now: str) -> Rendered:
    text = f"Correction about call call_{CALL}. Earlier text: unknown Now known: {now}"
    return Rendered(f"ses_{FIRST}", [{"role": "user", "content": text}], [])


def test_a_correction_tells_of_its_call() -> None:
    assert corrected("It is closed.").tells_of() == {f"call_{CALL}"}


def test_a_correction_with_the_result_of_its_own_call_is_right() -> None:
    stated = notices.quoted('{"to":"ada"}')
    assert judged(rendered=[corrected(f"The tool's result: {stated}")]) == []


def test_a_correction_with_the_result_of_another_call_is_misplaced() -> None:
    stated = notices.quoted('{"to":"ben"}')
    kinds = judged(rendered=[corrected(f"The tool's result: {stated}")])
    assert kinds == ["misplaced_result"]


def test_of_several_corrections_in_one_message_each_is_its_own_calls() -> None:
    ours, theirs = (notices.quoted(f'{{"to":"{name}"}}') for name in ("ada", "ben"))
    text = corrected(f"The tool's result: {ours}").messages[0]["content"]
    other = text.replace(CALL, OTHER).replace(ours, theirs)
    parts = [{"type": "text", "text": each} for each in (text, other)]
    both = Rendered(f"ses_{FIRST}", [{"role": "user", "content": parts}], [])
    assert both.tells_of() == {f"call_{CALL}", f"call_{OTHER}"}
    assert judged(rendered=[both]) == []


def test_what_the_desk_says_of_sessions_is_read() -> None:
    said: dict[str, Any] = {
        "compacted": [{"id": "c", "session": FIRST, "at": 5.0, "carried": [CALL]}],
        "handed_over": [
            {"id": "h", "sender": FIRST, "receiver": SECOND, "at": 6.0, "calls": [CALL]}
        ],
    }
    assert SessionsSeen.read(said) == SessionsSeen(compacted=[COMPACTED], handed_over=[HANDED])
