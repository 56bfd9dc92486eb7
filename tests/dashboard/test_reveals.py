"""One masked field, for who has the right, on grounds, for a minute, and in the audit for ever."""

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from dashboard.models import Deed
from dashboard.views import reveals as view
from ledger import ids
from ledger.models import Membership, ToolCall
from tests import builders, cast
from tests.dashboard.test_call_page import client_of

pytestmark = pytest.mark.django_db

SECRET = "hunter2-hunter2"


@pytest.fixture
def rita(acme: cast.Acme) -> Client:
    return client_of(cast.a_person("rita", acme.workspace, "revealer"))


@pytest.fixture
def call(acme: cast.Acme) -> ToolCall:
    made = builders.a_call(acme, "running", arguments={"token": SECRET, "to": "ada"})
    builders.cross(made)
    builders.settle(made, {"text": f"password={SECRET}", "ok": True})
    return made


def address(call: ToolCall) -> str:
    return f"/calls/{ids.shown('call', call.id)}/reveal"


def ask(client: Client, call: ToolCall, field: str = "/arguments/token", **more: str) -> Any:
    form = {"field": field, "grounds": "The provider asks which token it was.",
            "once": uuid4().hex}  # fmt: skip
    return client.post(address(call), form | more)


def test_a_revealer_sees_one_field_and_the_audit_keeps_it_without_the_value(
    rita: Client, call: ToolCall
) -> None:
    assert SECRET not in rita.get(address(call)).content.decode()
    answer = ask(rita, call)

    assert answer.content.decode().count(SECRET) == 1
    assert answer["Refresh"].endswith(f"url=/calls/{ids.shown('call', call.id)}")
    assert "no-store" in answer["Cache-Control"]
    deed = Deed.objects.get()
    assert (deed.person_name, deed.deed) == ("rita", "revealed a masked field")
    assert deed.target == f"{ids.shown('call', call.id)} /arguments/token"
    audit = rita.get("/audit").content.decode()
    assert "The provider asks which token it was." in audit
    assert SECRET not in audit


def test_a_field_of_the_result_is_one_too(rita: Client, call: ToolCall) -> None:
    assert f"password={SECRET}" in ask(rita, call, "/result/text").content.decode()


@pytest.mark.parametrize("roles", [["viewer"], ["operator"], ["approver"], ["admin"]])
def test_nobody_else_sees_one_not_even_an_admin(
    acme: cast.Acme, call: ToolCall, roles: list[str]
) -> None:
    client = client_of(cast.a_person("pia", acme.workspace, *roles))
    answer = ask(client, call)
    assert answer.status_code == 403
    assert SECRET not in answer.content.decode()
    assert "the right to reveal" in client.get(address(call)).content.decode()
    assert not Deed.objects.exists()


@pytest.mark.parametrize(
    ("more", "status"),
    [({"grounds": " "}, 422), ({"field": "/arguments/to"}, 404), ({"field": "/result"}, 404),
     ({"field": ""}, 404)],
    ids=["no grounds", "a field that is not masked", "a whole result", "no field"],
)  # fmt: skip
def test_what_is_refused_shows_and_writes_nothing(
    rita: Client, call: ToolCall, more: dict[str, str], status: int
) -> None:
    answer = ask(rita, call, **more)
    assert answer.status_code == status
    assert SECRET not in answer.content.decode()
    assert not Deed.objects.exists()


def test_an_old_login_signs_in_again_first(
    acme: cast.Acme, rita: Client, call: ToolCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.permissions.FRESH_LOGIN_S", -1.0)
    answer = ask(rita, call)
    assert answer.status_code == 403
    assert "/login/again" in answer.content.decode()
    assert not Deed.objects.exists()


def test_a_second_press_is_one_deed_and_after_its_minute_it_shows_nothing(
    rita: Client, call: ToolCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = uuid4().hex
    assert all(SECRET in ask(rita, call, once=key).content.decode() for _ in range(2))
    assert Deed.objects.count() == 1

    later = view.reveals.clock.now() + view.reveals.SHOWN_FOR
    monkeypatch.setattr("dashboard.reveals.clock.now", lambda: later)
    answer = ask(rita, call, once=key)
    assert answer.status_code == 422
    assert SECRET not in answer.content.decode()


def test_a_neighbour_finds_nothing(globex: cast.Globex, call: ToolCall) -> None:
    Membership.objects.get_or_create(
        workspace=globex.workspace, person=globex.mallory_herself, role="revealer"
    )
    client = client_of(globex.mallory_herself)
    assert client.get(address(call)).status_code == 404
    assert ask(client, call).status_code == 404


def test_a_call_without_secrets_says_so(acme: cast.Acme, rita: Client) -> None:
    plain = builders.a_call(acme, "succeeded", arguments={"to": "ada"})
    assert "Nothing of this call is masked" in rita.get(address(plain)).content.decode()
    page = rita.get(address(plain).removesuffix("/reveal")).content.decode()
    assert "See a masked field" not in page
