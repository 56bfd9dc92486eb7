"""A person's login reads a call with its secrets masked; the agent's key reads its own."""

import base64
from typing import Any

from django.test import Client

from ledger import ids
from ledger.api import masks
from ledger.masks import Hidden
from tests import builders, cast
from tests.api.callers import Caller

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
