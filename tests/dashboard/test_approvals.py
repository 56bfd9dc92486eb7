"""Requests for a second person on the pages: whose they are, what a yes would do, the answer."""

from typing import Any

import pytest

from ledger import ids
from recovery import requests, resolutions, stages
from recovery.models import Resolution
from tests import builders, cast
from tests.builders import fresh
from tests.dashboard.watching import an_hour_ago, once, signed_in, text_of
from tests.recovery.deciding import ambiguous, decide, found, version_of

pytestmark = pytest.mark.django_db

TWO = {"second_person": "always", "delivery_delay_s": 0}


@pytest.fixture
def amy(acme: cast.Acme) -> Any:
    return cast.a_person("amy", acme.workspace, "approver")


def address(resolution: Resolution) -> str:
    return f"/approvals/{ids.shown('resolution', resolution.id)}"


def answer(resolution: Resolution, yes: bool, **more: Any) -> dict[str, Any]:
    version = version_of(resolution.call)
    fields = {"answer": "yes" if yes else "no", "grounds": "I see it too.", "version": version}
    return once("first-press") | fields | more


def test_a_request_of_somebody_else_is_listed_and_shows_what_a_yes_would_do(
    acme: cast.Acme, amy: Any
) -> None:
    resolution = decide(acme, ambiguous(acme, **TWO), "happened")
    client = signed_in(amy)
    assert address(resolution) in text_of(client.get("/approvals"))
    page = text_of(client.get(address(resolution)))
    assert "Nothing will be called" in page
    assert "carries it out at once" in page
    assert 'aria-disabled="true"' not in page


def test_who_approves_sees_what_the_call_asked_for_and_whose_it_is(
    acme: cast.Acme, amy: Any
) -> None:
    arguments = {"amount": 250, "api_key": "hunter2"}
    call = builders.a_call(acme, "ambiguous", "side_effect", policy=TWO, arguments=arguments)
    resolution = decide(acme, call, "happened")
    page = text_of(signed_in(amy).get(address(resolution)))
    assert "250" in page
    assert "hunter2" not in page
    assert f'href="/calls/{ids.shown("call", call.id)}"' in page
    assert "which says: it happened" in page


def test_an_old_login_is_told_where_to_sign_in_again_before_it_answers(
    acme: cast.Acme, amy: Any
) -> None:
    resolution = decide(acme, ambiguous(acme, **TWO), "happened")
    client = signed_in(amy)
    an_hour_ago(client)
    page = text_of(client.get(address(resolution)))
    assert f"/login/again?next={address(resolution)}" in page
    assert 'aria-disabled="true"' not in page
    assert client.post(address(resolution), answer(resolution, yes=True)).status_code == 403
    assert not resolution.events.exists()


def test_my_own_request_is_listed_apart_and_the_page_says_why_i_may_not(acme: cast.Acme) -> None:
    alma = cast.a_person("alma", acme.workspace, "admin")
    resolution = decide(acme, ambiguous(acme, **TWO), "happened", by=cast.as_decider(alma))
    client = signed_in(alma)
    assert "Asked by you" in text_of(client.get("/approvals"))
    assert "you recorded this yourself" in text_of(client.get(address(resolution)))
    refused = client.post(address(resolution), answer(resolution, yes=True))
    assert refused.status_code == 403
    assert stages.of(resolution) == "requested"


def test_a_yes_carries_it_out_and_a_second_press_changes_nothing(acme: cast.Acme, amy: Any) -> None:
    call = ambiguous(acme, **TWO)
    resolution = decide(acme, call, "happened")
    client, fields = signed_in(amy), answer(resolution, yes=True)
    assert client.post(address(resolution), fields).status_code == 302
    assert client.post(address(resolution), fields).status_code == 302
    assert fresh(call).state == "succeeded"
    assert "approved by" in text_of(client.get("/approvals"))


def test_a_no_ends_the_request(acme: cast.Acme, amy: Any) -> None:
    resolution = decide(acme, ambiguous(acme, **TWO), "happened")
    signed_in(amy).post(address(resolution), answer(resolution, yes=False))
    assert stages.of(resolution) == "declined"
    assert list(requests.waiting(acme.workspace.id)) == []


@pytest.mark.parametrize("fields", [{"grounds": " "}, {"answer": "perhaps"}, {"version": "0"}])
def test_a_refused_answer_keeps_what_was_typed(
    acme: cast.Acme, amy: Any, fields: dict[str, str]
) -> None:
    resolution = decide(acme, ambiguous(acme, **TWO), "happened")
    refused = signed_in(amy).post(
        address(resolution), answer(resolution, yes=True, grounds="Long thought.") | fields
    )
    assert 400 <= refused.status_code < 500
    assert "grounds" in fields or "Long thought." in text_of(refused)
    assert stages.of(resolution) == "requested"


def test_a_request_whose_file_moved_has_lapsed_and_says_so(acme: cast.Acme, amy: Any) -> None:
    call = ambiguous(acme, **TWO)
    resolution = decide(acme, call, "happened")
    found(call, "did_not_happen", cast.as_decider(acme.olga))
    asked = requests.look(resolution_id=resolution.id, by=cast.as_decider(amy))
    assert asked.why_not.startswith("This resolution is lapsed already.")
    page = text_of(signed_in(amy).get(address(resolution)))
    assert "Nobody is asked any more: this request is lapsed." in page


def test_a_viewer_sees_the_request_and_who_may_answer(acme: cast.Acme, amy: Any) -> None:
    resolution = decide(acme, ambiguous(acme, **TWO), "happened")
    page = text_of(signed_in(acme.vera).get(address(resolution)))
    assert "Ask amy" in page


def test_mallory_finds_no_request_of_acme(acme: cast.Acme, globex: cast.Globex) -> None:
    resolution = decide(acme, ambiguous(acme, **TWO), "happened")
    client = signed_in(globex.mallory_herself)
    assert client.get(address(resolution)).status_code == 404
    assert "Nobody waits for a second person" in text_of(client.get("/approvals"))


def test_the_list_costs_the_same_queries_at_any_size(
    acme: cast.Acme, amy: Any, django_assert_max_num_queries: object
) -> None:
    client = signed_in(amy)
    for size in (1, 3):
        for _ in range(size):
            decide(acme, ambiguous(acme, **TWO), "happened")
        with django_assert_max_num_queries(18):  # type: ignore[operator]
            client.get("/approvals")


def test_an_answer_that_comes_too_late_keeps_its_text(acme: cast.Acme, amy: Any) -> None:
    resolution = decide(acme, ambiguous(acme, **TWO), "happened")
    asked = answer(resolution, yes=True)
    resolutions.take_back(
        resolution_id=resolution.id, grounds="Wrong day.", by=cast.as_decider(acme.olga)
    )
    late = signed_in(amy).post(address(resolution), asked)
    assert late.status_code == 409
    page = text_of(late)
    assert "this request is taken back" in page
    assert "readonly>I see it too.</textarea>" in page
