"""What was shown is what is done: the preview's boxes against the rows afterwards (R135)."""

from typing import Any

import pytest

from ledger.api import shapes as ledger_shapes
from ledger.calls import Reader, read_many
from ledger.handles import HandleToStore
from ledger.models import ToolCall, Turn
from ledger.vocabulary import Deadline
from recovery import resolutions, standings
from recovery.api import decision_shapes
from tests import builders
from tests.builders import fresh
from tests.cast import Acme, as_decider
from tests.ledger.saying import by_user, say
from tests.recovery.deciding import AT_ONCE, a_decision, ambiguous, found, incident_of

PROBED = {"probe": {"authoritative": True}}
ANSWERS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("side_effect", "happened", "", {}),
    ("side_effect", "happened", "", {"error": "half of it"}),
    ("side_effect", "happened", "", {"result": True}),
    ("side_effect", "did_not_happen", "close", {}),
    ("side_effect", "did_not_happen", "repeat", {}),
    ("side_effect", "abandon", "", {}),
    ("side_effect", "probe_again", "", {}),
    ("idempotent_write", "retry_same_key", "", {}),
    ("idempotent_write", "did_not_happen", "repeat", {}),
    ("long_running", "attach_handle", "", {"handle": HandleToStore(value="run-7")}),
    ("long_running", "did_not_happen", "close", {}),
]


@pytest.mark.parametrize(
    ("recovery_class", "answer", "then", "more"),
    ANSWERS,
    ids=[f"{c}-{a}-{t}-{'-'.join(m)}" for c, a, t, m in ANSWERS],
)
def test_the_preview_shows_what_the_decision_does(
    acme: Acme, recovery_class: str, answer: str, then: str, more: dict[str, Any]
) -> None:
    policy = PROBED if answer == "probe_again" else {}
    call, olga = ambiguous(acme, recovery_class, **policy, **AT_ONCE), as_decider(acme.olga)
    finding = answer if answer in ("happened", "did_not_happen") else "unknown"
    evidence = found(call, finding, olga, kind="document", body='{"id": 7}')
    named = more | ({"result": evidence.id} if more.get("result") else {})
    decision = a_decision(call, answer, then, evidence=(evidence.id,), **named)
    incident = incident_of(call)

    boxes = decision_shapes.preview(
        *resolutions.preview(incident_id=incident.id, decision=decision, by=olga)
    )
    untouched = fresh(call)
    resolutions.record(incident_id=incident.id, decision=decision, by=olga)

    assert (untouched.state, untouched.seq) == (call.state, call.seq + 1)  # the evidence alone
    assert_done(fresh(call), boxes)


def assert_done(call: ToolCall, boxes: dict[str, Any]) -> None:
    shown = boxes["ledger"]
    assert (call.state, call.effect) == (shown["state"]["after"], shown["effect"]["after"])
    assert call.attempts_allowed == shown["attempts_allowed"]["after"]
    armed = {str(each) for each in Deadline if getattr(call, f"{each}_at") is not None}
    assert armed == {*shown["deadlines"]["armed_s"], *shown["deadlines"]["kept"]}
    reader = Reader(call.workspace_id, call.agent_id)
    told = ledger_shapes.told_of(read_many([(reader, call.id)])[0])  # type: ignore[arg-type]
    notice = boxes["model"]["notice"]
    assert (told.to_json() if told else None) == (
        notice and {name: notice[name] for name in told.to_json()}  # type: ignore[union-attr]
    )
    if notice:
        assert notice["size_bytes"] == len(told.text.encode())  # type: ignore[union-attr]


def test_a_preview_writes_nothing_and_asks_for_no_confirmation(acme: Acme) -> None:
    call, olga = ambiguous(acme), as_decider(acme.olga)
    decision = a_decision(call, "abandon", confirm="")
    facts, ruling = resolutions.preview(
        incident_id=incident_of(call).id, decision=decision, by=olga
    )
    assert decision_shapes.preview(facts, ruling)["confirm"] == f"{call.tool} 1"
    assert fresh(call).seq == call.seq


def test_the_outside_box_shows_the_very_request_of_a_repeat(acme: Acme) -> None:
    call, olga = ambiguous(acme), as_decider(acme.olga)
    evidence = found(call, "did_not_happen", olga)
    decision = a_decision(call, "did_not_happen", "repeat", evidence=(evidence.id,))
    boxes = decision_shapes.preview(
        *resolutions.preview(incident_id=incident_of(call).id, decision=decision, by=olga)
    )
    assert boxes["outside"]["request"] == {
        "tool": call.tool,
        "arguments": call.arguments,
        "idempotency_key": call.effect_key,
        "attempt": 2,
        "queue": call.queue,
    }
    assert boxes["afterwards"]["carry_out_after_s"] == 10


def in_a_session(acme: Acme) -> tuple[ToolCall, Turn]:
    turn = builders.a_turn(builders.a_session(acme))
    say(turn, by_user("Pay the invoice."))
    return ambiguous(acme, turn=turn, **AT_ONCE), turn


def boxes_of(acme: Acme, call: ToolCall, answer: str, then: str = "") -> dict[str, Any]:
    olga = as_decider(acme.olga)
    evidence = (found(call, answer, olga).id,) if answer != "abandon" else ()
    decision = a_decision(call, answer, then, evidence=evidence)
    return decision_shapes.preview(
        *resolutions.preview(incident_id=incident_of(call).id, decision=decision, by=olga)
    )


def test_a_repeat_costs_each_budget_what_its_preview_said(acme: Acme) -> None:
    call, _ = in_a_session(acme)
    boxes = boxes_of(acme, call, "did_not_happen", "repeat")
    before = {each["scope"]: each for each in boxes["ledger"]["budgets"]}
    assert list(before) == ["call", "turn", "session", "tool"]
    assert all(each["spent"]["after"] == each["spent"]["before"] + 1 for each in before.values())

    decision = a_decision(call, "did_not_happen", "repeat",
                          evidence=(call.evidence.get().id,))  # fmt: skip
    resolutions.record(incident_id=incident_of(call).id, decision=decision,
                       by=as_decider(acme.olga))  # fmt: skip

    for scope, standing in standings.of_call(fresh(call)).items():
        assert standing.spent == before[str(scope)]["spent"]["after"]
        assert standing.limit == before[str(scope)]["limit"]["after"]
    assert standings.own(fresh(call)).limit == before["call"]["limit"]["after"]


def test_what_runs_nothing_again_costs_no_budget(acme: Acme) -> None:
    call, _ = in_a_session(acme)
    for each in boxes_of(acme, call, "abandon")["ledger"]["budgets"]:
        assert each["spent"]["before"] == each["spent"]["after"]


def test_the_text_stands_between_the_entries_of_its_transcript(acme: Acme) -> None:
    call, turn = in_a_session(acme)
    say(turn, by_user("Is it paid?"))
    place = boxes_of(acme, call, "abandon")["model"]["place"]
    assert place["role"] == "tool"
    assert place["before"]["text"] == "Is it paid?"  # no reply was recorded: the last of the turn
    assert place["after"] is None


def test_the_last_box_says_what_if_it_fails(acme: Acme) -> None:
    call, _ = in_a_session(acme)
    repeat = boxes_of(acme, call, "did_not_happen", "repeat")["afterwards"]
    assert "a person is asked again" in repeat["if_it_fails"]
    assert "waits for the repeat" in repeat["session"]
