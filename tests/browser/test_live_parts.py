"""The parts of an open page that follow the ledger: what they keep when no good answer comes, what
they count down, and what they say."""

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, Route, expect

from ledger import ids
from tests import builders, cast
from tests.browser import pages
from tests.recovery.deciding import ambiguous, incident_of

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = "**/parts/inbox?*"


def ask(page: Page) -> None:
    """Ask for the live parts, and have an answer."""
    with page.expect_response("**/parts/**"):
        page.keyboard.press("r")


def away(route: Route) -> None:
    """What is answered while PostgreSQL restarts."""
    route.fulfill(status=503, content_type="application/problem+json", body='{"title": "Away"}')


def test_an_error_takes_no_parts_place_and_the_page_goes_on_by_itself(
    signed_in: Page, acme: cast.Acme
) -> None:
    page, banner = signed_in, signed_in.locator("#not-updating")
    ambiguous(acme)
    page.clock.install()
    page.goto("/inbox")
    page.route(ROWS, away)
    ask(page)
    expect(banner).to_be_hidden()
    ask(page)
    expect(banner).to_contain_text("Not updating since")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("#inbox-rows")).not_to_contain_text("Away")

    page.unroute(ROWS)
    page.clock.fast_forward(10_000)
    expect(banner).to_be_hidden()
    builders.a_call(acme, "ambiguous")
    expect(page.locator("#inbox-new")).to_contain_text("1 new")


def test_after_two_misses_a_part_is_asked_for_after_10_and_then_after_30_seconds(
    signed_in: Page, acme: cast.Acme
) -> None:
    page, asked = signed_in, list[Route]()
    ambiguous(acme)
    page.clock.install()
    page.goto("/inbox")
    page.route(ROWS, lambda route: (asked.append(route), away(route)))
    ask(page)
    ask(page)
    expect(page.locator("#not-updating")).to_be_visible()
    page.evaluate("htmx.trigger('#inbox-rows', 'every')")
    with page.expect_response(ROWS):
        page.clock.fast_forward(10_000)
    assert len(asked) == 3
    page.clock.fast_forward(20_000)
    page.evaluate("htmx.trigger('#inbox-rows', 'every')")
    with page.expect_response(ROWS):
        page.clock.fast_forward(10_000)
    assert len(asked) == 4


def test_an_ended_login_leaves_the_page_and_its_text_and_stops_the_asking(
    signed_in: Page, acme: cast.Acme
) -> None:
    page, banner = signed_in, signed_in.locator("#login-ended")
    call = ambiguous(acme)
    page.goto(f"/incidents/{ids.shown('incident', incident_of(call).id)}")
    grounds = page.get_by_label("Grounds: why")
    grounds.fill("Half a sentence")
    grounds.press("Escape")
    Session.objects.all().delete()
    ask(page)
    expect(banner).to_contain_text("Your login has ended")
    expect(page.get_by_role("link", name="Sign in again in a new tab")).to_be_visible()
    expect(page.get_by_text("Did it start?")).to_be_visible()
    expect(grounds).to_have_value("Half a sentence")
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("htmx.trigger('.standing', 'every')")
    assert not asked

    pages.let_in(page)
    banner.get_by_role("button", name="Retry now").click()
    expect(banner).to_be_hidden()
    expect(grounds).to_have_value("Half a sentence")


def test_a_peek_that_is_not_answered_opens_nothing_and_says_so(
    signed_in: Page, acme: cast.Acme
) -> None:
    page = signed_in
    ambiguous(acme)
    page.goto("/inbox")
    page.route("**/peek", away)
    page.keyboard.press("l")
    expect(page.locator("#unanswered")).to_be_visible()
    expect(page.locator("#peek")).to_be_hidden()
    page.unroute("**/peek")
    page.keyboard.press("j")
    expect(page.locator("#peek-title")).to_be_visible()
    expect(page.locator("#unanswered")).to_be_hidden()
