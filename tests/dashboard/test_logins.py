"""Logins: how they begin, how long they last, what ends them, and the password once more."""

import time

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard import logins, throttle
from dashboard.models import Profile
from ledger.api.auth import LOGGED_IN_AT
from tests import cast

pytestmark = pytest.mark.django_db

WRONG = {"username": "olga", "password": "not the password"}
RIGHT = {"username": "olga", "password": cast.PASSWORD}


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def aged(client: Client, **ages_s: float) -> None:
    session = client.session
    for name, age_s in ages_s.items():
        session[name] = time.time() - age_s
    session.save()


def is_in(client: Client) -> bool:
    return client.get("/settings").status_code == 200


def test_the_sixth_wrong_password_is_answered_with_the_time_to_wait(acme: cast.Acme) -> None:
    client = Client()
    for _ in range(throttle.LIMITS["pair"][0]):
        assert client.post("/login", WRONG).status_code == 200
    answer = client.post("/login", RIGHT)
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 300
    assert f"Wait {answer['Retry-After']} seconds" in answer.content.decode()
    assert not is_in(client)


def test_an_unknown_name_waits_like_a_known_one(acme: cast.Acme) -> None:
    codes = [Client().post("/login", WRONG | {"username": "nobody"}).status_code for _ in range(6)]
    assert codes == [200] * 5 + [429]


def test_a_forwarded_address_in_a_header_changes_nothing(acme: cast.Acme) -> None:
    codes = [
        Client().post("/login", WRONG, headers={"X-Forwarded-For": f"192.0.2.{n}"}).status_code
        for n in range(6)
    ]
    assert codes[-1] == 429


def test_a_login_gets_a_new_key_at_sign_in(acme: cast.Acme) -> None:
    client = Client()
    session = client.session
    session["planted"] = "yes"
    session.save()
    before = session.session_key
    client.cookies["clearhouse_login"] = before
    client.post("/login", RIGHT)
    assert client.session.session_key != before


@pytest.mark.parametrize(
    ("ages", "stays"),
    [
        ({logins.SEEN: 1700}, True),
        ({logins.SEEN: 1900}, False),
        ({logins.BEGAN: 43100}, True),
        ({logins.BEGAN: 43300}, False),
    ],
    ids=["used lately", "idle too long", "begun today", "begun too long ago"],
)
def test_a_login_has_an_idle_and_an_absolute_bound(
    acme: cast.Acme, ages: dict[str, float], stays: bool
) -> None:
    client = signed_in(acme.olga)
    aged(client, **ages)
    assert is_in(client) is stays


def test_use_moves_the_idle_bound_and_never_the_absolute_one(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    aged(client, **{logins.SEEN: 900, logins.BEGAN: 40000})
    began = client.session[logins.BEGAN]
    assert is_in(client)
    assert time.time() - client.session[logins.SEEN] < 60
    assert client.session[logins.BEGAN] == began


def test_a_part_that_asks_by_itself_is_no_use(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    aged(client, **{logins.SEEN: 900})
    client.get("/parts/nothing-of-this-name")
    assert time.time() - client.session[logins.SEEN] > 800


def test_an_ended_login_is_told_so_and_comes_back(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    aged(client, **{logins.SEEN: 1900})
    answer = client.get("/?show=overdue")
    assert answer["Location"] == "/login?next=/%3Fshow%3Doverdue&ended=1"
    assert "Your login has ended" in client.get(answer["Location"]).content.decode()


def test_an_ended_login_is_none_for_the_api(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    assert client.get("/api/v1/incidents").status_code == 200
    aged(client, **{logins.SEEN: 1900})
    assert client.get("/api/v1/incidents").status_code == 401


def test_a_form_sent_after_the_end_says_that_nothing_was_sent(acme: cast.Acme) -> None:
    answer = Client().post("/settings", {"zone": "Europe/Berlin"})
    assert answer.status_code == 401
    assert "Nothing was sent" in answer.content.decode()
    assert not Profile.objects.exists()


def test_a_part_after_the_end_is_no_sign_in_page(acme: cast.Acme) -> None:
    assert Client().get("/settings", headers={"HX-Request": "true"}).status_code == 401


def test_a_part_for_who_is_no_member_any_more_is_refused(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    acme.olga.memberships.all().delete()
    assert client.get("/inbox").status_code == 200
    assert client.get("/parts/inbox", headers={"HX-Request": "true"}).status_code == 403


def test_a_changed_password_ends_every_other_login(acme: cast.Acme) -> None:
    here, there = signed_in(acme.olga), signed_in(acme.olga)
    before = here.session.session_key
    new = "another horse battery staple"
    answer = here.post(
        "/settings/password",
        {"old_password": cast.PASSWORD, "new_password1": new, "new_password2": new},
    )
    assert answer.status_code == 302
    assert is_in(here)
    assert here.session.session_key != before
    assert not is_in(there)
    assert Client().post("/login", RIGHT | {"password": new}).status_code == 302


def test_all_logins_end_together(acme: cast.Acme) -> None:
    here, there = signed_in(acme.olga), signed_in(acme.olga)
    here.post("/settings/logins/end")
    assert not is_in(here)
    assert not is_in(there)
    assert is_in(signed_in(acme.olga))


def test_the_password_once_more_makes_a_login_fresh_under_a_new_key(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    aged(client, **{LOGGED_IN_AT: 3600})
    before = client.session.session_key
    back = "/calls?show=overdue"
    answer = client.post("/login/again", {"password": cast.PASSWORD, "next": back})
    assert answer["Location"] == back
    assert time.time() - client.session[LOGGED_IN_AT] < 60
    assert client.session.session_key != before


def test_the_password_once_more_is_refused_where_it_is_wrong(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    aged(client, **{LOGGED_IN_AT: 3600})
    answer = client.post("/login/again", {"password": "wrong", "next": "/"})
    assert answer.status_code == 422
    assert "not your password" in answer.content.decode()
    assert time.time() - client.session[LOGGED_IN_AT] > 3000


def test_the_password_once_more_is_counted_like_a_sign_in(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    codes = [client.post("/login/again", {"password": "wrong"}).status_code for _ in range(6)]
    assert codes == [422] * 5 + [429]


@pytest.mark.parametrize("elsewhere", ["//evil.example/", "https://evil.example/", "javascript:x"])
def test_nobody_is_sent_elsewhere_after_it(acme: cast.Acme, elsewhere: str) -> None:
    client = signed_in(acme.olga)
    answer = client.post("/login/again", {"password": cast.PASSWORD, "next": elsewhere})
    assert answer["Location"] == "/"


def test_a_stale_login_is_led_to_its_password_and_back(acme: cast.Acme) -> None:
    from django.test import RequestFactory

    from dashboard.people import page
    from ledger.errors import LoginStale

    @page
    def decides(request: object) -> None:  # type: ignore[arg-type,type-var]
        raise LoginStale(minutes=15)

    request = RequestFactory().post("/x", headers={"Referer": "http://testserver/incidents/1?a=b"})
    request.user, request.session = acme.olga, {}
    request._messages = []
    request.resolver_match = None
    answer = decides(request)
    assert answer.status_code == 403
    assert "/login/again?next=/incidents/1%3Fa%3Db" in answer.content.decode()
