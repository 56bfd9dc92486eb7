"""Incidents over the API: found, counted, read with their timeline, and stopped by a person."""

from datetime import timedelta
from typing import Any

import pytest

from ledger import ids
from ledger.models import ToolCall
from recovery import restored
from recovery.models import Incident
from tests import builders, cast
from tests.api.callers import Caller, the_problem
from tests.recovery.test_recovering import PROBED, interrupted


def listed(who: Caller, query: str = "") -> list[dict[str, Any]]:
    answer = who.get(f"/incidents?{query}")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def an_ambiguous_call(acme: cast.Acme, **more: Any) -> ToolCall:
    return builders.a_call(acme, "ambiguous", **more)


def test_each_filter_narrows(ada: Caller, acme: cast.Acme) -> None:
    session = builders.a_session(acme)
    within = an_ambiguous_call(acme, session_id=session.id)
    builders.a_call(acme, "interrupted")
    wanted = [ids.shown("call", within.id)]
    for query in (
        "state=exhausted", "reason=no_proof", f"tool={within.tool}", "state=exhausted,resolved",
        f"session={ids.shown('session', session.id)}", f"call={ids.shown('call', within.id)}",
    ):  # fmt: skip
        assert [each["call"] for each in listed(ada, query)] == wanted, query
    assert len(listed(ada, "kind=recovery&open=true")) == 2
    assert listed(ada, "kind=contradiction") == []


def test_old_ones_are_found_by_their_age(ada: Caller, acme: cast.Acme) -> None:
    call = an_ambiguous_call(acme)
    assert listed(ada, "older_than=3600") == []
    Incident.objects.filter(call=call).update(
        opened_at=Incident.objects.get(call=call).opened_at - timedelta(hours=2)
    )
    assert len(listed(ada, "older_than=3600")) == 1


def test_the_filters_of_the_inbox_narrow_too(ada: Caller, acme: cast.Acme) -> None:
    call = an_ambiguous_call(acme)
    builders.a_call(acme, "interrupted")
    wanted = ids.shown("call", call.id)
    for name, value in {
        "needs_answer": "true", "call_state": "ambiguous", "taken": "nobody", "assigned": "nobody",
    }.items():  # fmt: skip
        assert wanted in [each["call"] for each in listed(ada, f"{name}={value}")], name
    assert [each["call"] for each in listed(ada, "needs_answer=true")] == [wanted]
    assert len(listed(ada, "agent=ada&class=side_effect&aside=no&from=2020-01-01")) == 2
    for query in (
        "needs_answer=true&kind=hold", "call_state=paused", "saw=real", "basis=probe", "age_min=1",
        "policy=9", "taken=olga", "assigned=olga", "aside=yes", "disputed=1", "overdue=1",
        "agent=ben", "until=2020-01-01", "effect=happened", "read=yes",
    ):  # fmt: skip
        assert listed(ada, query) == [], query


def test_incidents_come_oldest_first_where_that_is_asked(ada: Caller, acme: cast.Acme) -> None:
    made = [ids.shown("call", an_ambiguous_call(acme).id) for _ in range(2)]
    assert [each["call"] for each in listed(ada, "sort=oldest")] == made
    assert [each["call"] for each in listed(ada)] == made[::-1]


def test_no_filter_shows_an_agent_the_incident_of_another(ada: Caller, acme: cast.Acme) -> None:
    of_ben = an_ambiguous_call(acme, agent=acme.ben)
    for query in ("agent=ben", "needs_answer=true", "taken=nobody", "call_state=ambiguous",
                  f"tool={of_ben.tool}", f"call={ids.shown('call', of_ben.id)}"):  # fmt: skip
        assert listed(ada, query) == [], query


@pytest.mark.parametrize(
    "query",
    ["state=lost", "kind=x", "reason=tired", "tool=a%20b", "call_state=lost", "aside=perhaps",
     "age_min=0", "call=x", "session=x", "assigned=%00", "sort=due", "older_than=-1"],
)  # fmt: skip
def test_an_unknown_word_is_refused(ada: Caller, query: str) -> None:
    the_problem(ada.get(f"/incidents?{query}"), 422, "validation")


def test_an_incident_tells_whose_turn_it_is_and_until_when(ada: Caller, acme: cast.Acme) -> None:
    (shown,) = listed(ada) if an_ambiguous_call(acme) else []
    assert (shown["state"], shown["exhausted_because"]) == ("exhausted", "no_proof")
    assert (shown["asked"], shown["escalation_level"]) == ("operator", 0)
    assert shown["remind_at"] < shown["review_at"]
    assert shown["root"] == shown["id"]


def test_a_line_has_rule_policy_version_facts_timer_and_a_sentence(
    ada: Caller, acme: cast.Acme
) -> None:
    an_ambiguous_call(acme)
    (shown,) = listed(ada)
    last = shown["steps"][-1]
    assert (last["rung"], last["rule"], last["policy_version"], last["timer"]) == (
        "operator", "side_effects_need_proof", 1, "next_step",
    )  # fmt: skip
    assert last["facts"]["cause"] == "worker_lost"
    assert last["grounds"].endswith("An operator decides.")


def test_companions_are_of_the_same_session_and_time(ada: Caller, acme: cast.Acme) -> None:
    session = builders.a_session(acme)
    first, second, third = (an_ambiguous_call(acme, session_id=session.id) for _ in range(3))
    an_ambiguous_call(acme)
    long_ago = Incident.objects.get(call=third).opened_at - timedelta(minutes=11)
    Incident.objects.filter(call=third).update(opened_at=long_ago)
    one, other = (Incident.objects.get(call=call) for call in (first, second))
    shown = ada.get(f"/incidents/{ids.shown('incident', one.id)}").json()
    assert shown["companions"] == [ids.shown("incident", other.id)]


def test_the_summary_counts_what_is_open_by_kind_and_state(
    ada: Caller, mallory: Caller, acme: cast.Acme
) -> None:
    an_ambiguous_call(acme)
    an_ambiguous_call(acme)
    builders.a_call(acme, "interrupted")
    summary = ada.get("/incidents/summary").json()
    assert summary["open"] == 3
    assert {(each["state"], each["count"]) for each in summary["counts"]} == {
        ("exhausted", 2), ("detected", 1),
    }  # fmt: skip
    assert summary["oldest_age_s"] >= 0
    nothing = {"open": 0, "counts": [], "oldest_opened_at": None, "oldest_age_s": None}
    assert mallory.get("/incidents/summary").json() == nothing


# The end of the machine's turn


def stop(who: Caller, call: ToolCall) -> Any:
    incident = Incident.objects.get(call=call)
    path = f"/incidents/{ids.shown('incident', incident.id)}/recovery-stop"
    return who.post(path, {"grounds": "The shop is closed."})


@pytest.fixture
def olga(acme: cast.Acme, person: Any) -> Caller:
    caller: Caller = person("olga")
    return caller


def test_an_operator_stops_the_machine(olga: Caller, acme: cast.Acme) -> None:
    call = interrupted(acme, **PROBED)
    answers = [stop(olga, call) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["exhausted_because"] == "recovery_aborted"
    assert builders.fresh(call).state == "ambiguous"


def test_where_nothing_is_recovered_nothing_is_stopped(olga: Caller, acme: cast.Acme) -> None:
    the_problem(stop(olga, an_ambiguous_call(acme)), 409, "not_recovering")


# Somebody has looked


def confirm(who: Caller, incident: Incident) -> Any:
    path = f"/incidents/{ids.shown('incident', incident.id)}/confirmation"
    return who.post(path, {"grounds": "The mailbox holds it once."})


def test_a_suspicion_is_ended_by_somebody_who_looked(olga: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "succeeded")
    restored.mark(settled_within=timedelta(hours=1), by_id="1", by_name="alma", grounds="Disk.")
    incident = Incident.objects.get(call=call)
    answers = [confirm(olga, incident) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    shown = answers[1].json()
    assert (shown["state"], shown["review_at"]) == ("resolved", None)
    assert shown["steps"][-1]["facts"] == {"by": "olga"}
    assert len(shown["steps"]) == 2


def test_what_needs_a_decision_is_not_ended_by_looking(olga: Caller, acme: cast.Acme) -> None:
    call = an_ambiguous_call(acme)
    the_problem(confirm(olga, Incident.objects.get(call=call)), 409, "not_confirmable")
    assert Incident.objects.get(call=call).closed_at is None


def test_no_key_stops_the_machine(ada: Caller, acme: cast.Acme) -> None:
    call = interrupted(acme, **PROBED)
    assert stop(ada, call).status_code == 403
    assert builders.fresh(call).state == "interrupted"


# Work that can no longer be followed (R76)


def test_a_lost_handle_is_incomplete_with_its_partial_output(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_job_whose_handle_was_lost(acme, partial=[b"frame 1\n", b"frame 2\n"])
    shown = ada.get(f"/calls/{ids.shown('call', call.id)}").json()
    assert (shown["state"], shown["incomplete"], shown["result"]) == ("ambiguous", True, None)
    assert shown["partial"]["text"] == "frame 1\nframe 2\n"
    assert shown["partial"]["size_bytes"] == 16
    assert [each["incomplete"] for each in ada.get("/calls").json()["items"]] == [True]


def test_a_call_that_settled_well_is_not_incomplete(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "succeeded")
    shown = ada.get(f"/calls/{ids.shown('call', call.id)}").json()
    assert (shown["incomplete"], shown["partial"]) == (False, None)


def test_a_person_takes_and_releases_an_incident(person: Any, acme: cast.Acme) -> None:
    call, olga = an_ambiguous_call(acme), person("olga")
    id_ = ids.shown("incident", Incident.objects.get(call=call).id)
    assert olga.post(f"/incidents/{id_}/taking", json={}).json()["by"] == "olga"
    assert olga.get(f"/incidents/{id_}").json()["taken"]["by"] == "olga"
    assert olga.post(f"/incidents/{id_}/release", json={}).json()["taken"] is None
    assert olga.get(f"/incidents/{id_}").json()["taken"] is None


def test_a_person_sets_an_incident_aside_and_brings_it_back(person: Any, acme: cast.Acme) -> None:
    call, olga = an_ambiguous_call(acme), person("olga")
    path = f"/incidents/{ids.shown('incident', Incident.objects.get(call=call).id)}"
    told = {"minutes": 60, "grounds": "Their status page says ten."}
    assert olga.post(f"{path}/aside", json=told).json()["by"] == "olga"
    shown = olga.get(path).json()
    assert shown["set_aside"]["until"] > shown["set_aside"]["at"]
    assert shown["steps"][-1]["grounds"].endswith("Their status page says ten.")
    the_problem(olga.post(f"{path}/aside", json={"minutes": 0}), 422, "validation")
    assert olga.post(f"{path}/aside/end", json={}).json()["set_aside"] is None


def test_setting_aside_under_a_key_is_done_once(person: Any, acme: cast.Acme) -> None:
    call, olga = an_ambiguous_call(acme), person("olga")
    path = f"/incidents/{ids.shown('incident', Incident.objects.get(call=call).id)}"
    key = {"Idempotency-Key": "later"}
    first, again = (olga.post(f"{path}/aside", {"minutes": 60}, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    said = [step for step in olga.get(path).json()["steps"] if step["rung"] == "set_aside"]
    assert len(said) == 1
    other = olga.post(f"{path}/aside", {"minutes": 5}, headers=key)
    the_problem(other, 409, "key_reused")
    unnamed = olga.post(f"{path}/aside", {"minutes": 90}).json()
    assert unnamed["until"] > first.json()["until"]


def test_an_incident_is_assigned_by_name(person: Any, acme: cast.Acme) -> None:
    call, olga = an_ambiguous_call(acme), person("olga")
    path = f"/incidents/{ids.shown('incident', Incident.objects.get(call=call).id)}"
    assert olga.post(f"{path}/assignment", json={"to": "olga"}).json()["assigned"]["to"] == "olga"
    the_problem(olga.post(f"{path}/assignment", json={"to": "vera"}), 422, "validation")
    assert olga.get(path).json()["assigned"]["by"] == "olga"
    assert olga.post(f"{path}/assignment", json={"to": ""}).json()["assigned"] is None
