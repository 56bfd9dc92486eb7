"""The settings pages over HTTP: what is saved, what is shown once, who may press."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard import logins, members
from dashboard.models import Profile, WorkspaceChange
from ledger import keys
from ledger.models import ApiKey, Membership
from recovery.models import PersonsIntent
from tests import cast

pytestmark = pytest.mark.django_db

PAGES = ("/settings", "/settings/people", "/settings/keys", "/settings/notifications",
         "/settings/password")  # fmt: skip
INVITED = {"name": "nina", "roles": ["viewer"], "grounds": "New here.", "once": "k1"}
NEW_KEY = {"agent": "cora", "scopes": ["calls:read"], "grounds": "A new agent.", "once": "k1"}


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def anna(acme: cast.Acme) -> Client:
    """The admin of Acme, signed in."""
    return signed_in(cast.a_person("anna", acme.workspace, "admin"))


def secret_on(answer: Any) -> str:
    found = re.search(r'<code id="secret">([^<]+)</code>', answer.content.decode())
    return found[1] if found else ""


@pytest.mark.parametrize("path", PAGES)
def test_everybody_of_a_workspace_can_open_them(acme: cast.Acme, path: str) -> None:
    answer = signed_in(acme.vera).get(path)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]


def test_a_profile_is_saved_and_rules_the_pages(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    chosen = {"zone": "Asia/Kolkata", "theme": "dark", "tall_rows": "on"}
    assert client.post("/settings", chosen).status_code == 302
    html = client.get("/").content.decode()
    assert "Kolkata +05:30" in html
    assert 'class="dark"' in html
    assert 'class="framed tall"' in html
    assert 'data-letters="off"' in html
    instant, shown = re.findall(r'as of <time datetime="([^"]+)"[^>]*>([\d:]+)</time>', html)[0]
    there = datetime.fromisoformat(instant).astimezone(ZoneInfo("Asia/Kolkata"))
    assert shown == f"{there:%H:%M:%S}"


@pytest.mark.parametrize(
    ("named", "shown"),
    [("Asia/Kolkata", "Kolkata +05:30"), ("Mars/Base", ">UTC</a>"), ("", ">UTC</a>")],
)
def test_the_zone_of_the_browser_holds_where_it_names_a_known_one(
    acme: cast.Acme, named: str, shown: str
) -> None:
    client = signed_in(acme.olga)
    client.post("/settings", {"zone": "browser", "theme": "light"})
    client.cookies["zone"] = named
    assert shown in client.get("/").content.decode()


def test_a_browsers_zone_changes_nothing_for_who_chose_another(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    client.cookies["zone"] = "Asia/Kolkata"
    assert "Kolkata" not in client.get("/").content.decode()


def test_a_zone_of_one_person_is_not_anothers(acme: cast.Acme) -> None:
    signed_in(acme.olga).post("/settings", {"zone": "Asia/Kolkata", "theme": "light"})
    assert "Kolkata" not in signed_in(acme.vera).get("/").content.decode()


def test_an_unknown_zone_is_refused_at_its_field(acme: cast.Acme) -> None:
    answer = signed_in(acme.olga).post("/settings", {"zone": "Mars/Base", "theme": "light"})
    assert answer.status_code == 422
    assert 'id="id_zone_error"' in answer.content.decode()
    assert not Profile.objects.exists()


def test_a_zone_that_this_installation_lost_is_utc(acme: cast.Acme) -> None:
    Profile.objects.create(person=acme.olga, zone="Atlantis/Capital")
    page = signed_in(acme.olga).get("/").content.decode()
    assert 'title="The zone of all times on these pages">UTC</a>' in page


def test_a_person_of_two_workspaces_changes_between_them(
    acme: cast.Acme, globex: cast.Globex
) -> None:
    Membership.objects.create(workspace=globex.workspace, person=acme.vera, role="operator")
    client = signed_in(acme.vera)
    assert "<strong>viewer</strong>: reads" in client.get("/settings").content.decode()
    client.post("/settings/workspace", {"workspace": str(globex.workspace.pk)})
    assert "<strong>operator</strong>: decides" in client.get("/settings").content.decode()


@pytest.mark.parametrize("what", ["foreign", "no id"])
def test_nobody_changes_to_a_foreign_workspace(
    acme: cast.Acme, globex: cast.Globex, what: str
) -> None:
    client = signed_in(acme.vera)
    wanted = str(globex.workspace.pk) if what == "foreign" else "nonsense"
    assert client.post("/settings/workspace", {"workspace": wanted}).status_code == 404
    assert "<strong>viewer</strong>: reads" in client.get("/settings").content.decode()


def test_an_invitation_shows_a_password_that_opens_only_its_own_change(anna: Client) -> None:
    password = secret_on(anna.post("/settings/people", INVITED))
    nina = Client()
    assert nina.post("/login", {"username": "nina", "password": password}).status_code == 302
    assert nina.get("/")["Location"] == "/settings/password"
    assert nina.get("/api/v1/incidents").status_code == 401
    own = "a password of my own"
    typed = {"old_password": password, "new_password1": own, "new_password2": own}
    assert nina.post("/settings/password", typed).status_code == 302
    assert nina.get("/").status_code == 200
    assert nina.get("/api/v1/incidents").status_code == 200


def test_a_password_for_one_use_ends(anna: Client) -> None:
    password = secret_on(anna.post("/settings/people", INVITED))
    Profile.objects.update(one_time_until="2020-01-01T00:00Z")
    answer = Client().post("/login", {"username": "nina", "password": password})
    assert answer.status_code == 200
    assert "no login that may sign in" in answer.content.decode()


def test_a_second_press_makes_nothing_and_shows_no_password(anna: Client) -> None:
    password = secret_on(anna.post("/settings/people", INVITED))
    again = anna.post("/settings/people", INVITED)
    assert password
    assert secret_on(again) == ""
    assert "shown already" in again.content.decode()
    assert User.objects.filter(username="nina").count() == 1
    assert password not in str(list(PersonsIntent.objects.values()))


def test_a_taken_name_keeps_what_was_typed(anna: Client, acme: cast.Acme) -> None:
    answer = anna.post("/settings/people", INVITED | {"name": "olga"})
    html = answer.content.decode()
    assert answer.status_code == 409
    assert "There is a login of the name" in html
    assert 'value="New here."' in html


def test_grounds_are_asked_for(anna: Client) -> None:
    answer = anna.post("/settings/people", INVITED | {"grounds": " "})
    assert answer.status_code == 422
    assert "Say why" in answer.content.decode()
    assert not User.objects.filter(username="nina").exists()


def test_a_viewer_reads_whom_to_ask_and_cannot_press(acme: cast.Acme, anna: Client) -> None:
    vera = signed_in(acme.vera)
    assert "Ask anna." in vera.get("/settings/people").content.decode()
    assert vera.post("/settings/people", INVITED).status_code == 403
    assert vera.post("/settings/keys", NEW_KEY).status_code == 403
    assert not User.objects.filter(username="nina").exists()
    assert not ApiKey.objects.exists()


def test_changed_roles_end_the_logins_of_their_person(anna: Client, acme: cast.Acme) -> None:
    vera = signed_in(acme.vera)
    assert vera.get("/settings").status_code == 200
    typed = {"roles": ["operator"], "grounds": "Promoted.", "once": "k1"}
    assert anna.post(f"/settings/people/{acme.vera.pk}", typed).status_code == 302
    assert vera.get("/settings").status_code == 302
    assert "changed the roles of" in anna.get("/settings/people").content.decode()


def test_somebody_deactivated_is_out_at_once(anna: Client, acme: cast.Acme) -> None:
    vera = signed_in(acme.vera)
    path = f"/settings/people/{acme.vera.pk}"
    assert anna.post(f"{path}/deactivation", {"grounds": "Left.", "once": "k1"}).status_code == 302
    assert vera.get("/settings").status_code == 302
    refused = Client().post("/login", {"username": "vera", "password": cast.PASSWORD})
    assert refused.status_code == 200
    html = anna.get(path).content.decode()
    assert "Deactivated: vera" in html
    assert f"{path}/activation" in html


def test_the_last_admin_reads_why_not(anna: Client) -> None:
    own = User.objects.get(username="anna").pk
    typed = {"roles": ["viewer"], "grounds": "Tired.", "once": "k1"}
    answer = anna.post(f"/settings/people/{own}", typed)
    assert answer.status_code == 409
    assert "the last admin" in answer.content.decode()


def test_a_new_password_is_shown_once_and_ends_the_old_one(anna: Client, acme: cast.Acme) -> None:
    path = f"/settings/people/{acme.vera.pk}/password"
    password = secret_on(anna.post(path, {"grounds": "Lost it.", "once": "k1"}))
    acme.vera.refresh_from_db()
    assert acme.vera.check_password(password)
    assert logins.profile_of(acme.vera).one_time_until is not None


def test_a_key_is_shown_once_and_works(anna: Client) -> None:
    key = secret_on(anna.post("/settings/keys", NEW_KEY))
    assert keys.principal_of(key).scopes == {"calls:read"}
    assert key not in anna.get("/settings/keys").content.decode()
    assert key not in str(list(PersonsIntent.objects.values()))


def test_a_key_is_revoked_with_grounds(anna: Client) -> None:
    key = secret_on(anna.post("/settings/keys", NEW_KEY))
    path = f"/settings/keys/{key.split('_')[2]}"
    assert anna.post(path, {"grounds": "", "once": "k2"}).status_code == 422
    assert anna.post(path, {"grounds": "Leaked.", "once": "k3"}).status_code == 302
    assert ApiKey.objects.get().revoked_at is not None
    assert "Revoked: key" in anna.get(path).content.decode()


@pytest.mark.parametrize("noun", ["people", "keys"])
def test_what_is_a_neighbours_reads_like_what_is_absent(
    anna: Client, globex: cast.Globex, noun: str
) -> None:
    keys.issue(agent=globex.mallory)
    theirs = globex.mallory_herself.pk if noun == "people" else ApiKey.objects.get().id
    foreign = anna.get(f"/settings/{noun}/{theirs}")
    absent = anna.get(f"/settings/{noun}/{999999 if noun == 'people' else 'AAAAAAAAAAAA'}")
    assert foreign.status_code == absent.status_code == 404


@pytest.mark.parametrize(
    ("path", "grow"),
    [
        ("/settings/people", lambda acme, n: cast.a_person(f"p{n}", acme.workspace, "viewer")),
        ("/settings/keys", lambda acme, n: keys.issue(agent=acme.ada)),
    ],
    ids=["people", "keys"],
)
def test_a_list_costs_the_same_queries_at_any_size(
    anna: Client, acme: cast.Acme, path: str, grow: Callable[[cast.Acme, int], Any],
    django_assert_max_num_queries: Any,
) -> None:  # fmt: skip
    for size in (2, 40):
        for number in range(size):
            grow(acme, size * 100 + number)
        with django_assert_max_num_queries(14):
            assert anna.get(path).status_code == 200


def test_hostile_grounds_are_text(anna: Client, acme: cast.Acme) -> None:
    by = cast.as_decider(User.objects.get(username="anna"))
    hostile = "<img src=x onerror=alert(1)>\u202etxt"
    members.make_key(agent=hostile, scopes=["calls:read"], grounds=hostile, by=by)
    html = anna.get("/settings/keys").content.decode()
    assert "<img" not in html
    assert "\u202e" not in html
    assert WorkspaceChange.objects.get().grounds == hostile
