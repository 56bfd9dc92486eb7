"""The API's own description: complete, free of dangling names, and true of real answers."""

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from ledger.models import Tool
from recovery.models import Breaker
from tests import builders, cast
from tests.api.callers import API, Caller
from tests.recovery.deciding import incident_of


@pytest.fixture
def described(ada: Caller) -> dict[str, Any]:
    answer = Caller(str(ada.http.base_url)).get("/openapi.json")
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def operations(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path.removeprefix(API), operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]


def fits(described: dict[str, Any], name: str, value: Any) -> list[str]:
    schema = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
    return [str(error) for error in jsonschema_rs.validator_for(schema).iter_errors(value)]


def test_every_operation_says_what_it_does_who_may_and_how_it_refuses(
    described: dict[str, Any],
) -> None:
    known = described["components"]["securitySchemes"]
    assert described["openapi"].startswith("3.1")
    assert known.keys() == {"Key", "Login"}
    for method, path, operation in operations(described):
        assert operation["description"], (method, path)
        assert operation["security"], (method, path)
        assert all(each.keys() <= known.keys() for each in operation["security"])
        assert operation["responses"]["default"] == {"$ref": "#/components/responses/Refused"}
    assert "application/problem+json" in described["components"]["responses"]["Refused"]["content"]
    assert len(operations(described)) >= 20


def test_changes_of_tools_and_policies_take_a_login_only(described: dict[str, Any]) -> None:
    puts = [operation for method, _, operation in operations(described) if method == "PUT"]

    assert [operation["security"] for operation in puts] == [[{"Login": []}]] * 3


def test_no_name_in_it_dangles(described: dict[str, Any]) -> None:
    text = json.dumps(described)
    named = set(re.findall(r'"#/components/(\w+)/([\w-]+)"', text))

    assert {kind for kind, _ in named} == {"schemas", "parameters", "headers", "responses"}
    assert all(name in described["components"][kind] for kind, name in named)
    assert set(re.findall(r'"\$ref": "(#/[^c][^"]*)"', text)) == set()


NESTED = {"HandleIn", "FilterIn", "PlaceIn", "ReceiverIn"}


BY_A_PERSON = ("/stop", "/hold-release", "/binding", "/aside", "/assignment")


def taken_by_decisions() -> dict[str, tuple[str, str]]:
    """Bodies whose ids, tokens and versions belong to one call, turn or session."""
    names = ("ResolutionIn", "EvidenceIn", "ProofOfDeathIn", "TakingBackIn", "ApprovalIn",
             "CorrectionIn", "BulkIn", "BulkStartIn", "DeliveryIn", "CompactionIn",
             "CompactionCheckIn", "AcceptanceIn", "RefusalIn", "DisputeIn")  # fmt: skip
    return dict.fromkeys(names, ("POST", ""))


def test_every_documented_example_is_taken(
    described: dict[str, Any],
    ada: Caller,
    alma: Caller,
    person: Callable[..., Caller],
    acme: cast.Acme,
    lookup: Tool,
) -> None:
    cast.a_person("arno", acme.workspace, "operator", "approver")
    decides = person("arno")
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    left = builders.a_session(acme)
    of_left = builders.a_turn(left)
    ended = builders.a_session(acme)
    of_ended = builders.a_turn(ended)
    held = builders.a_call(acme, "paused", tool=builders.a_tool(acme), **_in_doubt(acme))
    breaker = Breaker.objects.create(workspace=acme.workspace, kind="tool", name="sandbox.lookup")
    incident = f"/incidents/{incident_of(builders.a_call(acme, 'ambiguous')).id}"
    decided = taken_by_decisions()
    wanted = decided | {
        "HoldAnswerIn": ("POST", f"/calls/{held.id}/hold-release"),
        "GroundsIn": ("POST", f"/sessions/{builders.a_session(acme).id}/stop"),
        "SubmitIn": ("POST", "/calls"),
        "BatchIn": ("POST", "/calls"),
        "SessionIn": ("POST", "/sessions"),
        "SayIn": ("POST", f"/sessions/{session.id}/turns/{turn.id}/messages"),
        "ReplyIn": ("POST", f"/sessions/{session.id}/turns/{turn.id}/replies"),
        "InterruptionIn": ("POST", f"/sessions/{left.id}/turns/{of_left.id}/interruption"),
        "TurnEndIn": ("POST", f"/sessions/{ended.id}/turns/{of_ended.id}/end"),
        "ResumptionIn": ("POST", f"/sessions/{session.id}/resumption"),
        "BindingIn": ("POST", f"/sessions/{builders.a_session(acme).id}/binding"),
        "HandOffIn": ("POST", f"/sessions/{session.id}/handoffs"),
        "TurnIn": ("POST", f"/sessions/{ended.id}/turns"),
        "ValidationIn": ("POST", "/transcripts/validation"),
        "RepairIn": ("POST", "/transcripts/repair"),
        "ToolIn": ("PUT", "/tools/shop.order"),
        "PolicyIn": ("PUT", "/policies/shop.order"),
        "TrialIn": ("POST", "/policies/shop.order/trials"),
        "SwitchIn": ("PUT", "/tools/shop.order/switch"),
        "GrantIn": ("POST", "/budgets/grants"),
        "BreakerIn": ("POST", f"/breakers/{breaker.id}"),
        "AsideIn": ("POST", f"{incident}/aside"),
        "AssignmentIn": ("POST", f"{incident}/assignment"),
    }
    schemas = described["components"]["schemas"]

    named = {name for name in schemas if name.endswith("In")} - NESTED
    assert named == wanted.keys()
    for name, (method, path) in wanted.items():
        for example in schemas[name]["examples"]:
            assert fits(described, name, example) == []
            if name in decided:
                continue  # taken in tests of their own, by a call or turn that fits each
            by = decides if path.endswith(BY_A_PERSON) else ada
            by_an_admin = method == "PUT" or name in ("GrantIn", "BreakerIn", "TrialIn")
            answer = (alma if by_an_admin else by).send(method, path, example)
            assert answer.is_success, (name, answer.text)


def _in_doubt(acme: cast.Acme) -> dict[str, Any]:
    """A turn in which a side effect may have happened."""
    session = builders.a_session(acme)
    place = {"session_id": session.id, "turn_id": builders.a_turn(session).id}
    builders.a_call(acme, "ambiguous", **place)
    return place


@pytest.mark.parametrize("in_state", ["scheduled", "paused", "succeeded", "failed", "ambiguous"])
def test_real_calls_have_the_documented_shape(
    in_state: str, described: dict[str, Any], ada: Caller, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, in_state)
    shape = described["components"]["schemas"]["CallOut"]

    for body in (ada.get(f"/calls/{call.id}").json(), ada.get("/calls").json()["items"][0]):
        assert fits(described, "CallOut", body) == []
        assert body.keys() == shape["properties"].keys()


def test_real_lists_and_refusals_have_the_documented_shape(
    described: dict[str, Any], ada: Caller, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "ambiguous")
    lists = ("/calls", "/tools", "/policies", "/incidents", f"/calls/{call.id}/events")

    for path in lists:
        assert fits(described, "PageOut", ada.get(path).json()) == [], path
    for answer in (ada.get("/calls/call_1"), ada.post("/calls", {}), ada.send("DELETE", "/calls")):
        assert fits(described, "Problem", answer.json()) == []
    for example in described["components"]["schemas"]["Problem"]["examples"]:
        assert fits(described, "Problem", example) == []


def test_the_page_of_the_description_answers_and_loads_only_from_here(ada: Caller) -> None:
    page = Caller(str(ada.http.base_url)).get("/docs")
    scripts = re.findall(r'<script[^>]*src="([^"]+)"', page.text)
    styles = re.findall(r'<link[^>]*href="([^"]+\.css)"', page.text)

    assert page.status_code == 200
    assert scripts
    assert styles
    for address in scripts + styles:
        assert address.startswith("/"), address
        assert ada.http.get(address).status_code == 200, address
