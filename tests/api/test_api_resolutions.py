"""Decisions over HTTP: a person's login, evidence, a version, a key; and no agent's key at all."""

from collections.abc import Callable
from typing import Any

import pytest

from ledger import ids
from ledger.models import ToolCall
from recovery.models import PersonsIntent, Resolution
from tests import builders, cast
from tests.api.callers import Caller, the_problem
from tests.recovery.deciding import AT_ONCE, ambiguous, delay_over, incident_of

LOOKED = {"kind": "checked", "finding": "happened", "message": "Looked at: the list of sent mails."}


@pytest.fixture
def olga(acme: cast.Acme, person: Callable[..., Caller]) -> Caller:
    return person("olga")


def keyed(key: str = "k-1", **headers: str) -> dict[str, Any]:
    return {"headers": {"Idempotency-Key": key, **headers}}


def path_of(call: ToolCall, below: str = "") -> str:
    return f"/incidents/{ids.shown('incident', incident_of(call).id)}{below}"


def looked(caller: Caller, call: ToolCall, **other: Any) -> str:
    """Put evidence on the file, and give its id."""
    answer = caller.post(path_of(call, "/evidence"), {**LOOKED, **other}, **keyed("look"))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def a_body(caller: Caller, call: ToolCall, evidence: str, **other: Any) -> dict[str, Any]:
    version = caller.get(path_of(call)).json()["decision_version"]
    return {"answer": "happened", "grounds": "It is in the list.", "evidence": [evidence],
            "decision_version": version, **other}  # fmt: skip


def test_a_decision_is_recorded_then_carried_out(acme: cast.Acme, olga: Caller) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call))

    answer = olga.post(path_of(call, "/resolutions"), body, **keyed())

    assert (answer.status_code, answer.json()["stage"]) == (201, "pending"), answer.text
    assert answer.json()["carry_out_at"]
    delay_over(call)
    shown = olga.get(f"/resolutions/{answer.json()['id']}").json()
    assert (shown["stage"], builders.fresh(call).state) == ("carried_out", "succeeded")


def test_the_agent_reads_the_statement_in_place_of_a_result(
    acme: cast.Acme, olga: Caller, ada: Caller
) -> None:
    call = ambiguous(acme, **AT_ONCE)
    before = ada.get(f"/calls/{call.id}").json()["notice"]
    body = a_body(olga, call, looked(olga, call))
    shown = olga.post(path_of(call, "/resolutions/preview"), body).json()["model"]["notice"]
    olga.post(path_of(call, "/resolutions"), body, **keyed())

    after = ada.get(f"/calls/{call.id}").json()["notice"]

    assert (before["template"], after["template"]) == ("ambiguous", "happened_stated")
    assert after["text"] == shown["text"]
    assert after["kind"] == "operator-stated"


def test_no_key_decides(acme: cast.Acme, olga: Caller, agent: Callable[..., Caller]) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call))
    every_scope = agent(acme.ada, "calls:submit", "calls:read", "turns:write", "worker")

    for below in ("/resolutions", "/resolutions/preview", "/evidence", "/proof-of-death"):
        the_problem(every_scope.post(path_of(call, below), body, **keyed()), 403,
                    "permission_missing")  # fmt: skip
    assert Resolution.objects.count() == 0


def test_a_double_press_is_one_decision_with_one_answer(acme: cast.Acme, olga: Caller) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call))

    first, second = (
        olga.post(path_of(call, "/resolutions"), body, **keyed("press")) for _ in range(2)
    )

    assert first.json() == second.json()
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (Resolution.objects.count(), PersonsIntent.objects.count()) == (1, 2)


def test_the_same_key_for_another_decision_is_refused(acme: cast.Acme, olga: Caller) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call))
    olga.post(path_of(call, "/resolutions"), body, **keyed("press"))

    other = olga.post(path_of(call, "/resolutions"), {**body, "grounds": "Else."}, **keyed("press"))

    the_problem(other, 409, "key_reused")


def test_a_decision_without_a_key_or_a_version_is_refused(acme: cast.Acme, olga: Caller) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call))
    no_version = {name: value for name, value in body.items() if name != "decision_version"}

    the_problem(olga.post(path_of(call, "/resolutions"), body), 400, "idempotency_key_missing")
    the_problem(
        olga.post(path_of(call, "/resolutions"), no_version, **keyed()), 428,
        "precondition_required",
    )  # fmt: skip


def test_a_stale_version_is_told_what_changed_and_who(acme: cast.Acme, olga: Caller) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call))
    olga.post(path_of(call, "/evidence"), {**LOOKED, "message": "Also the bill."}, **keyed("two"))

    stale = olga.post(path_of(call, "/resolutions"), body, **keyed())
    matched = olga.post(path_of(call, "/resolutions"), body, **keyed(**{"If-Match": '"2"'}))

    problem = the_problem(stale, 409, "version_conflict")
    assert "evidence checked by olga" in problem["detail"]
    assert problem["current"]["decision_version"] == 3
    the_problem(matched, 412, "version_conflict")


def test_the_etag_of_an_incident_is_taken_as_if_match(acme: cast.Acme, olga: Caller) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call), decision_version=1)
    tag = olga.get(path_of(call)).headers["ETag"]

    answer = olga.post(path_of(call, "/resolutions"), body, **keyed(**{"If-Match": tag}))

    assert (tag, answer.status_code) == ('"2"', 201)


def test_a_locked_denial_says_until_when(acme: cast.Acme, olga: Caller) -> None:
    call = builders.a_call(acme, "ambiguous")
    evidence = looked(olga, call, finding="did_not_happen")
    body = a_body(olga, call, evidence, answer="did_not_happen", then="close")

    problem = the_problem(
        olga.post(path_of(call, "/resolutions"), body, **keyed()), 409, "locked"
    )

    assert problem["current"]["countdown_s"] is not None
    assert olga.get(path_of(call)).json()["lock"]["dead_by"] == problem["current"]["dead_by"]


def test_a_viewer_reads_what_may_be_answered_and_why_not(
    acme: cast.Acme, person: Callable[..., Caller]
) -> None:
    call = ambiguous(acme)
    vera = person("vera")

    can = vera.get(path_of(call)).json()["can"]

    assert {each["code"] for each in can} == {"permission_missing"}
    the_problem(vera.post(path_of(call, "/evidence"), LOOKED, **keyed()), 403,
                "permission_missing")  # fmt: skip


def test_a_neighbour_finds_no_incident_to_decide(
    acme: cast.Acme, olga: Caller, globex: cast.Globex, person: Callable[..., Caller]
) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call))
    mallory = person("mallory")

    for below in ("/resolutions", "/evidence"):
        sent = body if below == "/resolutions" else LOOKED
        the_problem(mallory.post(path_of(call, below), sent, **keyed()), 404, "not_found")


def test_what_is_taken_back_in_time_moves_nothing(acme: cast.Acme, olga: Caller) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call))
    given = olga.post(path_of(call, "/resolutions"), body, **keyed()).json()

    taken = olga.post(f"/resolutions/{given['id']}/taking-back", {"grounds": "The wrong day."},
                      **keyed("back"))  # fmt: skip

    assert (taken.status_code, taken.json()["stage"]) == (201, "taken_back")
    assert builders.fresh(call).state == "ambiguous"
