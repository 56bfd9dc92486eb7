"""A person's login reads a call with its secrets masked; the agent's key reads its own."""

import base64
from collections.abc import Callable
from typing import Any

from django.test import Client

from ledger import ids
from ledger.api import masks
from ledger.masks import Hidden
from ledger.models import Evidence
from tests import builders, cast
from tests.api import callers
from tests.api.callers import Caller
from tests.recovery.deciding import found

SECRET = "hunter2-hunter2"


def test_a_login_reads_no_secret_and_the_agents_key_reads_its_own(
    ada: Caller, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "running", arguments={"password": SECRET, "to": "ada"})
    builders.cross(call)
    builders.settle(call, {"token": SECRET, "ok": True})
    login, at = Client(), f"/calls/{ids.shown('call', call.id)}"
    login.force_login(acme.olga)

    for path in ("/calls", at, f"{at}/events", f"{at}/attempts"):
        answer = login.get(f"/api/v1{path}")
        assert answer.status_code == 200
        assert SECRET not in answer.content.decode()
    shown = login.get(f"/api/v1{at}").json()
    assert shown["arguments"]["to"] == "ada"
    assert "masked (token)" in shown["result"]["json"]["token"]
    assert ada.get(at).json()["arguments"]["password"] == SECRET
    assert ada.get(at).json()["result"]["json"]["token"] == SECRET


def test_a_result_that_is_no_json_is_masked_inside_its_base64() -> None:
    body: dict[str, Any] = {
        "result": {"base64": base64.b64encode(f"password={SECRET}".encode()).decode()}
    }
    shown = masks.call_masked(body, Hidden())
    text = base64.b64decode(shown["result"]["base64"]).decode()
    assert text.startswith("password=•••• masked (password)")
    binary = {"result": {"base64": base64.b64encode(b"\xff\x00").decode(), "json": None}}
    assert masks.call_masked(binary, Hidden())["result"] == binary["result"]


def test_a_pointer_of_the_policy_hides_a_field_of_arguments_result_and_error_from_a_login(
    ada: Caller, acme: cast.Acme
) -> None:
    tool = builders.a_tool(acme, masked=["/arguments/card", "/result/receipt"])
    call = builders.a_call(acme, "running", tool=tool, arguments={"card": SECRET})
    builders.cross(call)
    builders.settle(call, {"receipt": "r-77-r-77", "said": f"charged {SECRET}"})
    login, at = Client(), f"/calls/{ids.shown('call', call.id)}"
    login.force_login(acme.olga)

    shown = login.get(f"/api/v1{at}").json()
    assert shown["arguments"]["card"].startswith("•••• masked (card) #")
    assert shown["result"]["json"]["receipt"].startswith("•••• masked (receipt) #")
    assert shown["arguments"]["card"] in shown["result"]["json"]["said"]
    assert ada.get(at).json()["arguments"] == {"card": SECRET}


def a_piece(acme: cast.Acme, body: str, media_type: str = "text/plain") -> Evidence:
    """Evidence about a call of Ada's whose card is secret."""
    tool = builders.a_tool(acme, masked=["/arguments/card", "/result/receipt"])
    call = builders.a_call(acme, "ambiguous", tool=tool, arguments={"card": SECRET})
    by = cast.as_decider(acme.olga)
    return found(call, "happened", by, kind="document", body=body, media_type=media_type)


def at(piece: Evidence) -> str:
    return f"/evidence/{ids.shown('evidence', piece.id)}"


def test_the_body_of_evidence_is_masked_for_a_login_and_whole_for_the_agents_key(
    ada: Caller, acme: cast.Acme
) -> None:
    row = '{"card": "4929-1234", "receipt": "r-77-r-77", "said": "paid with ' + SECRET + '"}'
    login = Client()
    login.force_login(acme.olga)
    text, record = a_piece(acme, f"paid with {SECRET}"), a_piece(acme, row, "application/json")

    for piece in (text, record):
        answer = login.get(f"/api/v1{at(piece)}")
        assert answer.status_code == 200
        assert answer.json()["call"] == ids.shown("call", piece.call_id)
    shown = login.get(f"/api/v1{at(record)}").json()["json"]
    assert {name: said.partition(" #")[0] for name, said in shown.items()} == {
        "card": "•••• masked (card)",
        "receipt": "•••• masked (receipt)",
        "said": "paid with •••• masked (card)",
    }
    said = base64.b64decode(login.get(f"/api/v1{at(text)}").json()["base64"]).decode()
    assert said.startswith("paid with •••• masked (card)")
    assert base64.b64decode(ada.get(at(text)).json()["base64"]).decode() == f"paid with {SECRET}"
    assert ada.get(at(record)).json()["json"]["receipt"] == "r-77-r-77"


def test_an_agent_reads_evidence_about_its_own_calls_only(
    acme: cast.Acme, agent: Callable[..., Caller]
) -> None:
    piece = a_piece(acme, "a record")
    callers.the_problem(agent(acme.ben).get(at(piece)), 404, "not_found")


def test_a_body_that_was_cut_within_a_character_is_masked_all_the_same() -> None:
    cut = f"password={SECRET} costs 9 €".encode()[:-1]
    body: dict[str, Any] = {"result": {"base64": base64.b64encode(cut).decode()}}
    shown = masks.call_masked(body, Hidden())
    assert SECRET.encode() not in base64.b64decode(shown["result"]["base64"])
