"""A person's login reads a call with its secrets masked; the agent's key reads its own."""

import base64

from django.test import Client

from ledger import ids
from ledger.api import masks
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


def test_a_result_that_is_no_json_is_masked_inside_its_base64(acme: cast.Acme) -> None:
    body = {"result": {"base64": base64.b64encode(f"password={SECRET}".encode()).decode()}}
    shown = masks.given_to(cast.as_decider(acme.olga), body)
    text = base64.b64decode(shown["result"]["base64"]).decode()
    assert text.startswith("password=•••• masked (password)")
    binary = {"result": {"base64": base64.b64encode(b"\xff\x00").decode()}}
    assert masks.given_to(cast.as_decider(acme.olga), binary) == binary
