"""The parts of an open page that follow the ledger: what they keep when no good answer comes, what
they count down, and what they say."""

import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, Route, expect

from ledger import ids
from tests import builders, cast
from tests.browser import pages
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, incident_of

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


def test_deadlines_count_down_and_over_and_so_does_what_came_later(
    signed_in: Page, acme: cast.Acme
) -> None:
    page = signed_in
    ambiguous(acme, review_s=60)
    page.clock.install()
    page.goto("/inbox")
    # The server's clock is not the browser's here: what it drew anew would begin again.
    page.route(ROWS, lambda route: route.fulfill(status=304))
    page.keyboard.press("l")
    dues = (page.locator("td.due time"), page.locator("#peek time[data-due]").first)
    for due in dues:
        expect(due).to_have_text(re.compile(r"^in 0:[345]\d$"))
    page.clock.fast_forward(30_000)
    for due in dues:
        expect(due).to_have_text(re.compile(r"^in 0:[012]\d$"))
    page.clock.fast_forward(35_000)
    for due in dues:
        expect(due).to_have_text(re.compile(r"^overdue by 0:\d\d$"))
    page.keyboard.press(".")
    stands = dues[0].inner_text()
    page.clock.fast_forward(5_000)
    expect(dues[0]).to_have_text(stands)
    assert page.locator("[aria-live] time[data-due], [role=status] time[data-due]").count() == 0


def test_what_is_new_and_what_is_lost_is_said_once_in_ten_seconds(
    signed_in: Page, acme: cast.Acme
) -> None:
    page, polite = signed_in, signed_in.locator("#polite")
    ambiguous(acme)
    page.clock.install()
    page.goto("/inbox")
    builders.a_call(acme, "ambiguous")
    expect(polite).to_have_text("1 new", timeout=10_000)
    page.route(ROWS, away)
    ask(page)
    ask(page)
    expect(page.locator("#not-updating")).to_be_visible()
    expect(polite).to_have_text("1 new")
    page.clock.fast_forward(10_000)
    expect(polite).to_contain_text("Not updating since")
    assert page.locator("[aria-live]").count() == 1


def test_the_title_of_the_tab_follows_the_state_of_the_call(
    signed_in: Page, acme: cast.Acme
) -> None:
    page, call = signed_in, builders.a_call(acme, "running")
    page.goto(f"/calls/{ids.shown('call', call.id)}")
    names = f"{call.tool} {call.id.hex[-8:]} · Clearhouse"
    expect(page).to_have_title(f"running {names}")
    builders.settle(call, {"sent": True})
    ask(page)
    expect(page).to_have_title(f"succeeded {names}")


def test_the_title_of_an_incident_follows_and_that_of_a_form_stays(
    signed_in: Page, acme: cast.Acme
) -> None:
    page, call = signed_in, ambiguous(acme, **AT_ONCE)
    where = f"/incidents/{ids.shown('incident', incident_of(call).id)}"
    page.goto(where)
    form = page.context.new_page()
    form.goto(f"{where}/resolution")
    before = page.title(), form.title()
    decide(acme, call, "happened")
    for each in (page, form):
        ask(each)
        expect(each.locator(".standing")).to_contain_text("succeeded", ignore_case=True)
    assert (page.title() != before[0], form.title() == before[1]) == (True, True)
    assert page.title().split(": ")[1] == before[0].split(": ")[1]
