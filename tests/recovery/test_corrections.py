"""Corrections: what was settled stays, what is held and told of it follows the latest word."""

from typing import Any

import pytest

from ledger import deliveries, outcomes
from ledger.api import shapes
from ledger.calls import Reader, read_many
from ledger.deliveries import Fetched
from ledger.journal import events_of
from ledger.models import ToolCall
from ledger.verdicts import verdict_for
from ledger.vocabulary import IncidentKind, IncidentState
from recovery import corrections, stages
from recovery.models import Incident, Resolution
from recovery.refusals import (
    DecisionStale,
    DenialLocked,
    EvidenceRequired,
    NotEligible,
    SecondPersonRequired,
)
from tests.builders import a_call, fresh
from tests.cast import Acme, a_person, as_decider
from tests.recovery.deciding import AT_ONCE, a_decision, ambiguous, decide, found
from tests.refusals import sql


def correct(acme: Acme, call: ToolCall, answer: str, by: Any = None, **more: Any) -> Resolution:
    by = by or as_decider(acme.olga)
    if answer in ("happened", "did_not_happen") and "evidence" not in more:
        more["evidence"] = (found(call, answer, by).id,)
    decision = a_decision(call, answer, **more)
    return corrections.correct(call_id=call.id, decision=decision, by=by)


def read(call: ToolCall) -> dict[str, Any]:
    """The call as its agent fetches it, and the fetch recorded."""
    fetched = read_many([(Reader(call.workspace_id, call.agent_id), call.id)])[0]
    assert not isinstance(fetched, Exception)
    deliveries.write([Fetched(
        call.id, call.workspace_id, call.agent_id.hex, str(fetched.call.state),
        str(fetched.call.effect), outcomes.digest_of(fetched), fetched.call.seq,
    )])  # fmt: skip
    return shapes.call(fetched)


def settled(acme: Acme, answer: str = "happened", then: str = "", **policy: Any) -> ToolCall:
    call = ambiguous(acme, **{**AT_ONCE, **policy})
    decide(acme, call, answer, then)
    return fresh(call)


def test_a_correction_supersedes_and_never_moves_the_call(acme: Acme) -> None:
    call = settled(acme)
    first = Resolution.objects.get(call=call)
    second = correct(acme, call, "did_not_happen")
    assert (second.supersedes, second.is_correction) == (first, True)
    assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")
    assert stages.of(first) == stages.of(second) == "carried_out"
    assert events_of(call.id)[-1].kind == "corrected"


def test_the_verdict_follows_the_latest_correction(acme: Acme) -> None:
    call = settled(acme)
    correct(acme, call, "did_not_happen")
    assert verdict_for(fresh(call)).effect.answer == "did_not_happen"
    correct(acme, call, "abandon")
    assert verdict_for(fresh(call)).effect.answer == "unknown"
    assert verdict_for(fresh(call)).effect.events[-1] == fresh(call).seq


def test_an_agent_that_read_the_earlier_text_is_told_both(acme: Acme) -> None:
    call = settled(acme)
    before = read(call)["notice"]["text"]
    correct(acme, call, "did_not_happen")
    after = read(call)
    assert after["notice"]["template"] == "correction"
    assert before in after["notice"]["text"]
    assert after["notice"]["text"].endswith("its effect did not happen. It is closed.")
    assert (after["correction"]["earlier"], after["correction"]["read_before"]) == (before, True)


def test_an_agent_that_read_nothing_reads_only_what_holds(acme: Acme) -> None:
    call = settled(acme)
    correct(acme, call, "did_not_happen")
    assert read(call)["notice"]["template"] == "denied_stated"
    assert read(call)["correction"]["read_before"] is False


def test_a_real_result_is_corrected_by_a_text_beside_it(acme: Acme) -> None:
    call = a_call(acme, "succeeded")
    assert read(call)["notice"] is None
    sql("UPDATE ledger_attempt SET dead_at = dead_at - interval '1 hour'")
    correct(acme, call, "did_not_happen")
    after = read(call)
    assert after["result"]["json"] == {"ok": True}
    assert '{\\"ok\\":true}' in after["notice"]["text"]


def test_a_closed_denial_that_was_wrong_is_corrected(acme: Acme) -> None:
    call = settled(acme, "did_not_happen", "close")
    correct(acme, call, "happened")
    assert verdict_for(fresh(call)).effect.answer == "happened"
    assert read(call)["notice"]["template"] == "happened_stated"


def test_a_correction_that_says_what_is_held_is_refused(acme: Acme) -> None:
    call = settled(acme)
    with pytest.raises(NotEligible, match="held already"):
        correct(acme, call, "happened")


def test_an_open_call_is_resolved_not_corrected(acme: Acme) -> None:
    with pytest.raises(NotEligible, match="resolved instead"):
        correct(acme, ambiguous(acme), "happened")


def test_a_call_that_never_began_has_nothing_to_correct(acme: Acme) -> None:
    with pytest.raises(NotEligible, match="Nothing was begun"):
        correct(acme, a_call(acme, "expired"), "happened")


def test_a_correction_rests_on_evidence_and_the_present_version(acme: Acme) -> None:
    call = settled(acme)
    with pytest.raises(EvidenceRequired):
        correct(acme, call, "did_not_happen", evidence=())
    with pytest.raises(DecisionStale):
        correct(acme, call, "did_not_happen", version=1)


def test_a_denying_correction_is_locked_like_any_denial(acme: Acme) -> None:
    call = a_call(acme, "ambiguous", policy=AT_ONCE)
    decide(acme, call, "happened")
    with pytest.raises(DenialLocked, match="not proven dead"):
        correct(acme, call, "did_not_happen")


def test_two_people_are_asked_where_the_policy_says_so(acme: Acme) -> None:
    call = a_call(acme, "succeeded", policy={"second_person": "always", "in_flight_grace_s": 0})
    with pytest.raises(SecondPersonRequired, match="may approve"):
        correct(acme, call, "did_not_happen")
    amy = as_decider(a_person("amy", acme.workspace, "approver"))
    correct(acme, call, "did_not_happen", by=amy)
    with pytest.raises(SecondPersonRequired, match="you made the decision"):
        correct(acme, call, "happened", by=amy)


def contradicted(acme: Acme) -> tuple[ToolCall, Incident]:
    call = settled(acme, "did_not_happen", "close")
    incident = Incident.objects.create(
        workspace_id=call.workspace_id, call=call, kind=IncidentKind.CONTRADICTION,
        state=IncidentState.DETECTED,
    )  # fmt: skip
    return call, incident


@pytest.mark.parametrize("answer", ["stands", "happened"])
def test_a_contradiction_is_closed_by_a_correction_or_by_standing(acme: Acme, answer: str) -> None:
    call, incident = contradicted(acme)
    text = read(call)["notice"]["text"]
    correct(acme, call, answer)
    incident.refresh_from_db()
    assert (incident.state, incident.closed_at is None) == ("resolved", False)
    assert (read(call)["notice"]["text"] == text) == (answer == "stands")


def test_nothing_stands_against_no_contradiction(acme: Acme) -> None:
    with pytest.raises(NotEligible, match="No finding contradicts"):
        correct(acme, settled(acme), "stands")


def test_the_preview_of_a_correction_has_the_text_that_will_be_read(acme: Acme) -> None:
    call, olga = settled(acme), as_decider(acme.olga)
    read(call)
    evidence = found(call, "did_not_happen", olga)
    decision = a_decision(call, "did_not_happen", evidence=(evidence.id,))
    shown = corrections.preview(call_id=call.id, decision=decision, by=olga).text
    corrections.correct(call_id=call.id, decision=decision, by=olga)
    assert read(call)["notice"]["text"] == shown
