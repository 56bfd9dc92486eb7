"""Decisions over HTTP: a person's login, evidence, a version, a key; and no agent's key at all."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.sessions.models import Session

from ledger import ids
from ledger.api.auth import LOGGED_IN_AT
from ledger.models import Membership, ToolCall
from recovery import bulk
from recovery.models import PersonsIntent, Resolution
from tests import builders, cast
from tests.api import served
from tests.api.callers import Caller, the_problem
from tests.recovery.deciding import AT_ONCE, ambiguous, delay_over, incident_of

LOOKED = {"kind": "checked", "finding": "happened", "message": "Looked at: the list of sent mails.",
          "reference": "sent/4711"}  # fmt: skip


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


@pytest.mark.parametrize("kind", ["checked", "document"])
def test_what_names_nothing_to_look_up_is_refused(acme: cast.Acme, olga: Caller, kind: str) -> None:
    path = path_of(ambiguous(acme), "/evidence")
    bare = LOOKED | {"kind": kind, "reference": " ", "body": ""}
    the_problem(olga.post(path, bare, **keyed("bare")), 422, "evidence_incomplete")
    for brings in ({"reference": "4711"}, {"body": "id;4711"}, {"kind": "statement"}):
        assert olga.post(path, bare | brings, **keyed(str(brings))).status_code == 201


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

    problem = the_problem(olga.post(path_of(call, "/resolutions"), body, **keyed()), 409, "locked")

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


def test_a_decision_is_disputed_and_a_third_person_decides(
    acme: cast.Acme, olga: Caller, person: Callable[..., Caller]
) -> None:
    call = ambiguous(acme)
    for name in ("omar", "tess"):
        cast.a_person(name, acme.workspace, "operator")
    omar, tess = person("omar"), person("tess")
    evidence = looked(olga, call)
    given = olga.post(path_of(call, "/resolutions"), a_body(olga, call, evidence), **keyed()).json()
    says = {"answer": "did_not_happen", "then": "close", "grounds": "The bank has nothing."}

    made = omar.post(f"/resolutions/{given['id']}/dispute", says, **keyed("dispute"))

    assert (made.status_code, made.json()["by"]) == (201, "omar"), made.text
    body = a_body(olga, call, evidence)
    refused = olga.post(path_of(call, "/resolutions"), body, **keyed("again"))
    the_problem(refused, 403, "third_person_required")
    decided = tess.post(path_of(call, "/resolutions"), body, **keyed("third")).json()
    [shown] = olga.get(path_of(call)).json()["disputes"]
    assert (shown["resolution"], shown["decision"]) == (given["id"], decided["id"])


# Every shape that decides


@pytest.fixture
def amy(acme: cast.Acme, person: Callable[..., Caller]) -> Caller:
    cast.a_person("amy", acme.workspace, "approver")
    return person("amy")


def examples(caller: Caller, name: str) -> dict[str, Any]:
    schemas = caller.get("/openapi.json").json()["components"]["schemas"]
    found: dict[str, Any] = schemas[name]["examples"][0]
    return found


def test_a_second_person_approves_over_http(acme: cast.Acme, olga: Caller, amy: Caller) -> None:
    call = ambiguous(acme, second_person="always", **AT_ONCE)
    evidence = looked(olga, call)
    body = {**examples(olga, "ResolutionIn"), "evidence": [evidence]}
    given = olga.post(path_of(call, "/resolutions"), body, **keyed()).json()
    path = f"/resolutions/{given['id']}/approval"
    answer = examples(olga, "ApprovalIn")

    the_problem(olga.post(path, answer, **keyed("own")), 403, "permission_missing")
    approved = amy.post(path, answer, **keyed("amy"))

    assert (given["stage"], approved.json()["stage"]) == ("requested", "carried_out")
    assert [each["by"] for each in approved.json()["events"]] == ["amy", None]


def test_a_correction_is_previewed_and_made_over_http(
    acme: cast.Acme, olga: Caller, ada: Caller
) -> None:
    call = ambiguous(acme, **AT_ONCE)
    olga.post(path_of(call, "/resolutions"), a_body(olga, call, looked(olga, call)), **keyed())
    first = ada.get(f"/calls/{call.id}").json()["notice"]["text"]
    served.until_quiet()
    found = olga.post(f"/calls/{call.id}/evidence", {**LOOKED, "finding": "did_not_happen"},
                      **keyed("look")).json()["id"]  # fmt: skip
    version = olga.get(f"/calls/{call.id}/file").json()["decision_version"]
    body = {**examples(olga, "CorrectionIn"), "evidence": [found], "decision_version": version}

    shown = olga.post(f"/calls/{call.id}/corrections/preview", body).json()["model"]["correction"]
    made = olga.post(f"/calls/{call.id}/corrections", body, **keyed("correct"))

    assert (made.status_code, made.json()["is_correction"]) == (201, True), made.text
    after = ada.get(f"/calls/{call.id}").json()
    assert (after["notice"]["text"], after["correction"]["earlier"]) == (shown, first)
    assert after["state"] == "succeeded"


def test_a_bulk_run_is_frozen_started_and_reported_over_http(acme: cast.Acme, olga: Caller) -> None:
    tool = builders.a_tool(acme, "sandbox.send_mail")
    call = builders.a_call(acme, "ambiguous", tool=tool)
    looked(olga, call)
    the_problem(
        olga.post("/bulk-resolutions", {"answer": "happened", "grounds": "x"}, **keyed()), 400,
        "filter_empty",
    )  # fmt: skip
    frozen = olga.post("/bulk-resolutions", examples(olga, "BulkIn"), **keyed("bulk")).json()
    path = f"/bulk-resolutions/{frozen['id']}"

    started = olga.post(f"{path}/run", examples(olga, "BulkStartIn"), **keyed("run"))
    bulk.run_due()

    assert (frozen["eligible"], started.status_code) == ({"will_run": 1}, 202)
    assert olga.get(path).json()["outcomes"] == {"done": 1}
    taken = olga.post(f"{path}/taking-back", examples(olga, "TakingBackIn"), **keyed("back"))
    assert taken.json() == {"taken_back": 1, "too_late": 0}


def test_what_failed_in_a_bulk_run_is_frozen_anew_over_http(acme: cast.Acme, olga: Caller) -> None:
    call = builders.a_call(acme, "ambiguous", tool=builders.a_tool(acme, "sandbox.send_mail"))
    looked(olga, call)
    frozen = olga.post("/bulk-resolutions", examples(olga, "BulkIn"), **keyed("bulk")).json()
    path = f"/bulk-resolutions/{frozen['id']}"
    the_problem(olga.post(f"{path}/again", {}, **keyed("early")), 422, "validation")
    olga.post(f"{path}/run", {}, **keyed("run"))
    Membership.objects.filter(person=acme.olga).update(role="viewer")
    bulk.run_due()
    Membership.objects.filter(person=acme.olga).update(role="operator")

    answer = olga.post(f"{path}/again", {}, **keyed("again"))

    assert answer.status_code == 201, answer.text
    new = answer.json()
    assert (new["answer"], new["eligible"]) == ("happened", {"will_run": 1})
    assert new["id"] != frozen["id"]
    for run in (frozen, new):
        listed = olga.get(f"/incidents?bulk={run['id']}").json()["items"]
        assert [each["call"] for each in listed] == [ids.shown("call", call.id)]
    the_problem(olga.get("/incidents?bulk=1"), 422, "validation")


def test_a_machine_is_called_gone_over_http(acme: cast.Acme, olga: Caller) -> None:
    call = builders.a_call(acme, "ambiguous")
    body = examples(olga, "ProofOfDeathIn")

    answer = olga.post(path_of(call, "/proof-of-death"), body, **keyed("gone"))

    assert (answer.status_code, answer.json()["dead_proof"]) == (201, "host_gone"), answer.text
    assert olga.get(path_of(call)).json()["locked_until"] == answer.json()["unlocks_at"]


def test_a_login_of_yesterday_decides_nothing_about_a_side_effect(
    acme: cast.Acme, olga: Caller
) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call))
    for session in Session.objects.all():
        values = session.get_decoded() | {LOGGED_IN_AT: time.time() - 901}
        session.session_data = Session.objects.encode(values)
        session.save()

    the_problem(
        olga.post(path_of(call, "/resolutions"), body, **keyed()), 403, "fresh_login_required"
    )


@pytest.mark.parametrize("text", ["<script>x</script>", "\u202e", "'; DROP TABLE x; --", "\ud7ff"])
def test_hostile_grounds_come_back_as_they_were_sent(
    text: str, acme: cast.Acme, olga: Caller
) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call, message=text), grounds=text)

    given = olga.post(path_of(call, "/resolutions"), body, **keyed()).json()

    shown = olga.get(path_of(call)).json()
    assert given["grounds"] == text
    assert [each["message"] for each in shown["evidence"]] == [text]


def test_a_nul_in_grounds_is_refused(acme: cast.Acme, olga: Caller) -> None:
    call = ambiguous(acme)
    body = a_body(olga, call, looked(olga, call), grounds="a\x00b")
    the_problem(olga.post(path_of(call, "/resolutions"), body, **keyed()), 422, "validation")
