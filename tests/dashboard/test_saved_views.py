"""Saved views: a named address of a list, one's own or shared, and nobody else's."""

from typing import Any

import pytest
from django.test import Client

from dashboard import saved_views
from dashboard.models import SavedView
from tests import builders, cast
from tests.dashboard.deciding import address, operator, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    return operator(acme.olga)


@pytest.fixture
def vera(acme: cast.Acme) -> Client:
    return operator(acme.vera)


def save(client: Client, name: str = "Mine", query: str = "state=paused", **more: Any) -> Any:
    form = {"page": "inbox", "query": query, "name": name, "once": f"once-{name}"} | more
    return client.post("/saved-views", form)


def view(name: str = "Mine") -> SavedView:
    return SavedView.objects.get(name=name)


def test_a_view_keeps_filters_order_and_columns_and_nothing_else(olga: Client) -> None:
    answer = save(olga, query="class=side_effect&sort=newest&columns=age,tool&after=x&evil=1")
    assert answer["Location"] == "/inbox?class=side_effect&sort=newest&columns=age"
    page = olga.get("/inbox").content.decode()
    assert "class=side_effect&amp;sort=newest&amp;columns=age" in page


def test_a_view_opens_the_list_that_it_names(acme: cast.Acme, olga: Client) -> None:
    call = builders.a_call(acme, "ambiguous")
    save(olga, query=f"tool={call.tool}")
    save(olga, "None of them", "tool=other")
    assert address(call) in olga.get(f"/inbox?{view().query}").content.decode()
    assert address(call) not in olga.get(f"/inbox?{view('None of them').query}").content.decode()


def test_views_stand_above_their_own_list_only(olga: Client) -> None:
    save(olga, "Of the inbox")
    save(olga, "Of calls", page="calls")
    assert "Of calls" not in text(olga.get("/inbox"))
    assert "Of calls" in text(olga.get("/calls"))
    assert "Of calls" in text(olga.get("/saved-views"))


def test_a_view_is_its_makers_until_it_is_shared(olga: Client, vera: Client) -> None:
    save(olga)
    assert "Mine" not in text(vera.get("/inbox"))
    olga.post(f"/saved-views/{view().id}", {"name": "Ours", "shared": "1"})
    assert "Ours by olga" in text(vera.get("/inbox"))
    olga.post(f"/saved-views/{view('Ours').id}", {"name": "Ours"})
    assert "Ours" not in text(vera.get("/inbox"))


def test_only_its_maker_changes_a_view_and_an_admin_deletes_a_shared_one(
    acme: cast.Acme, olga: Client, vera: Client
) -> None:
    save(olga, shared="1")
    path = f"/saved-views/{view().id}"
    for stranger in (vera, operator(cast.a_person("adam", acme.workspace, "admin"))):
        assert stranger.post(path, {"name": "Taken"}).status_code == 404
    assert vera.post(f"{path}/deletion").status_code == 404
    assert view().name == "Mine"
    admin = operator(cast.a_person("alva", acme.workspace, "admin"))
    assert admin.post(f"{path}/deletion").status_code == 302
    assert not SavedView.objects.exists()


def test_a_view_that_is_not_shared_is_no_admins(acme: cast.Acme, olga: Client) -> None:
    save(olga)
    admin = operator(cast.a_person("adam", acme.workspace, "admin"))
    assert admin.post(f"/saved-views/{view().id}/deletion").status_code == 404
    assert olga.post(f"/saved-views/{view().id}/deletion").status_code == 302


def test_a_neighbour_neither_sees_nor_ends_a_shared_view(globex: cast.Globex, olga: Client) -> None:
    save(olga, shared="1")
    mallory = operator(globex.mallory_herself)
    assert "Mine" not in text(mallory.get("/saved-views"))
    for word in ("", "/deletion"):
        answer = mallory.post(f"/saved-views/{view().id}{word}", {"name": "Hers"})
        assert answer.status_code == 404
    assert view().name == "Mine"


@pytest.mark.parametrize("name", ["", "   ", "x" * 81])
def test_a_view_without_a_good_name_is_refused(olga: Client, name: str) -> None:
    assert save(olga, name).status_code == 422
    assert not SavedView.objects.exists()


def test_a_name_is_given_once_for_each_list(olga: Client) -> None:
    save(olga)
    refused = save(olga, query="state=ambiguous", once="another")
    assert refused.status_code == 422
    assert "a view of this name already" in text(refused)
    assert save(olga, page="calls", once="calls").status_code == 302


def test_a_button_pressed_twice_saves_one_view(olga: Client) -> None:
    assert save(olga).status_code == save(olga).status_code == 302
    assert SavedView.objects.count() == 1


def test_there_is_an_end_to_views(olga: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "EACH_MAX", 1)
    save(olga)
    assert "delete one first" in text(save(olga, "Another"))


@pytest.mark.parametrize("page", ["", "tools", "../calls"])
def test_only_the_lists_have_views(olga: Client, page: str) -> None:
    assert save(olga, page=page).status_code == 422


def test_a_hostile_name_is_text(olga: Client) -> None:
    save(olga, "<script>alert(1)</script>\u202e", query="tool=%3Cscript%3E")
    for path in ("/inbox", "/saved-views"):
        page = olga.get(path).content.decode()
        assert "<script>alert(1)" not in page
        assert "⟨U+202E⟩" in page
