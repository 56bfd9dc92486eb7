"""The pages over HTTP: who gets which, and what their headers say."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from dashboard import reference
from dashboard.views import problems
from tests import builders, cast

pytestmark = pytest.mark.django_db

PUBLIC = ("/login", "/problems/fence_lost", "/api/v1/docs")


def signed_in(person: object) -> Client:
    client = Client()
    client.force_login(person)  # type: ignore[arg-type]
    return client


def test_the_start_page_asks_for_a_login(client: Client) -> None:
    answer = client.get("/calls?overdue=1")
    assert answer.status_code == 302
    assert answer["Location"] == f"{reverse('login')}?next=/calls%3Foverdue%3D1"


def test_the_start_page_is_never_kept_by_a_cache(acme: cast.Acme) -> None:
    answer = signed_in(acme.olga).get("/")
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("path", PUBLIC)
def test_these_pages_need_no_login(client: Client, path: str) -> None:
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", PUBLIC)
def test_every_page_carries_the_whole_policy(client: Client, path: str) -> None:
    policy = client.get(path)["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/workers",
        "/deadlines",
        "/audit",
        "/approvals",
        "/drills",
        "/readiness",
        "/login",
        "/problems/fence_lost",
    ],
)
def test_a_page_has_no_inline_style_script_or_event(acme: cast.Acme, path: str) -> None:
    builders.a_call(acme)
    page = (Client() if path == "/login" else signed_in(acme.olga)).get(path).content.decode()
    assert "<style" not in page
    assert " style=" not in page
    assert re.findall(r"<script(?! src=)", page) == []
    assert " on" + "click=" not in page


def test_signing_out_takes_a_post(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    assert client.get("/logout").status_code == 405
    assert client.post("/logout").status_code == 302
    assert client.get("/").status_code == 302


def test_a_login_is_not_led_to_another_site(client: Client, acme: cast.Acme) -> None:
    answer = client.post(
        "/login",
        {"username": "olga", "password": cast.PASSWORD, "next": "https://elsewhere.invalid/"},
    )
    assert answer["Location"] == "/"


def test_a_new_login_key_comes_with_each_sign_in(client: Client, acme: cast.Acme) -> None:
    fields = {"username": "olga", "password": cast.PASSWORD}
    first = client.post("/login", fields).cookies["clearhouse_login"].value
    client.post("/logout")
    assert client.post("/login", fields).cookies["clearhouse_login"].value != first


def test_somebody_who_may_not_sign_in_any_more_reads_the_same_refusal(
    client: Client, acme: cast.Acme
) -> None:
    acme.olga.is_active = False
    acme.olga.save()
    answer = client.post("/login", {"username": "olga", "password": cast.PASSWORD})
    assert "belong to no login that may sign in" in answer.content.decode()


@pytest.mark.parametrize("code", sorted(reference.errors()))
def test_every_problem_code_has_a_page_with_a_next_step(client: Client, code: str) -> None:
    page = client.get(f"/problems/{code}").content.decode()
    assert code in page
    assert reference.errors()[code].status in problems.NEXT_STEPS
    assert "{" not in page


def test_a_problem_page_shows_where_an_answer_carries_values(client: Client) -> None:
    assert (
        "Attempt ‹fence› no longer holds this call."
        in client.get("/problems/fence_lost").content.decode()
    )


def test_an_unknown_problem_code_is_not_found(client: Client) -> None:
    assert client.get("/problems/no_such_code").status_code == 404
