"""The bell in a browser: one stream for all tabs, parts that follow at once, and notifications."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests import builders, cast, waits
from tests.browser import pages
from tests.browser.conftest import OpenPage
from tests.dashboard.deciding import address
from tests.recovery.deciding import ambiguous

pytestmark = pytest.mark.django_db(transaction=True)

STREAM = re.compile("/parts/bell$")
AT_ONCE_MS = 5000  # where a poll would take 15 s
NOTIFICATION = """
window.told = [];
window.Notification = class extends EventTarget {
  static permission = localStorage.getItem("permission") ?? "default";
  static async requestPermission() {
    localStorage.setItem("permission", "granted");
    return Notification.permission = "granted";
  }
  constructor(title, options) { super(); told.push([title, options.body]); window.last = this; }
  close() {}
};
"""


@pytest.fixture(autouse=True)
def known(acme: cast.Acme) -> None:
    """A first call, or the overview would be empty."""
    builders.a_call(acme, "succeeded")


def goto(page: Page, path: str) -> None:
    """Open a page, and wait until it listens."""
    with page.expect_response(STREAM) as answer:
        page.goto(path)
    assert answer.value.status == 200


def told(page: Page) -> list[list[str]]:
    found: list[list[str]] = page.evaluate("window.told")
    return found


def is_told(page: Page) -> None:
    """Wait until something is told on this page."""
    waits.until(lambda: bool(told(page)), what="a notification", limit_s=10)


def test_a_part_follows_a_change_at_once(signed_in: Page, acme: cast.Acme) -> None:
    goto(signed_in, "/")
    tile = signed_in.get_by_role("link", name="Needs an answer")
    expect(tile).to_contain_text("0")
    ambiguous(acme)
    expect(tile).to_contain_text("1", timeout=AT_ONCE_MS)


def test_a_paused_page_does_not_follow(signed_in: Page, acme: cast.Acme) -> None:
    goto(signed_in, "/")
    signed_in.keyboard.press(".")
    asked: list[str] = []
    signed_in.on("request", lambda request: asked.append(request.url))
    ambiguous(acme)
    signed_in.wait_for_timeout(2500)
    assert [each for each in asked if "/parts/overview" in each] == []


def test_where_the_stream_is_refused_the_page_polls_as_before(
    signed_in: Page, acme: cast.Acme
) -> None:
    signed_in.route(STREAM, lambda route: route.fulfill(status=429))
    signed_in.goto("/calls")
    builders.a_call(acme, "succeeded")
    expect(signed_in.locator("#newer")).to_contain_text("1 new", timeout=10_000)


def test_all_tabs_of_a_browser_share_one_stream_and_another_takes_over(
    signed_in: Page, acme: cast.Acme
) -> None:
    goto(signed_in, "/")
    second = signed_in.context.new_page()
    asked: list[str] = []
    second.on("request", lambda request: asked.append(request.url))
    second.goto("/")
    tile = second.get_by_role("link", name="Needs an answer")
    expect(tile).to_contain_text("0")
    ambiguous(acme)
    expect(tile).to_contain_text("1", timeout=AT_ONCE_MS)
    assert not any(STREAM.search(each) for each in asked)
    with second.expect_response(STREAM):
        signed_in.close()
    ambiguous(acme)
    expect(tile).to_contain_text("2", timeout=AT_ONCE_MS)


# Notifications


@pytest.fixture
def wishing(open_page: OpenPage, acme: cast.Acme) -> Page:
    """Olga has allowed notifications in her browser; one incident waited already."""
    ambiguous(acme)
    page = open_page()
    page.context.add_init_script(NOTIFICATION)
    pages.sign_in(page)
    goto(page, "/settings")
    expect(page.get_by_text("They are off in this browser.")).to_be_visible()
    page.get_by_role("button", name="Notify me in this browser").click()
    expect(page.get_by_text("They are on in this browser")).to_be_visible()
    return page


def test_what_newly_needs_an_answer_is_told_once_over_all_tabs(
    wishing: Page, acme: cast.Acme
) -> None:
    second = wishing.context.new_page()
    second.goto("/")
    call = ambiguous(acme)
    is_told(wishing)
    wishing.wait_for_timeout(1500)
    assert (told(wishing), told(second)) == ([["Needs an answer", call.tool]], [])

    with second.expect_response(STREAM):
        wishing.close()
    again = ambiguous(acme)
    is_told(second)
    assert told(second) == [["Needs an answer", again.tool]]


def test_a_notification_opens_its_page(wishing: Page, acme: cast.Acme) -> None:
    call = ambiguous(acme)
    is_told(wishing)
    assert told(wishing) == [["Needs an answer", call.tool]]
    wishing.evaluate("window.last.dispatchEvent(new Event('click'))")
    expect(wishing).to_have_url(re.compile(address(call)))


def test_many_at_once_are_one_notification(wishing: Page, acme: cast.Acme) -> None:
    wishing.evaluate("dispatchEvent(new Event('pagehide'))")
    for _ in range(4):
        ambiguous(acme)
    wishing.evaluate("dispatchEvent(new Event('pageshow'))")
    is_told(wishing)
    assert told(wishing) == [["Need an answer", "4 are new"]]


def test_nothing_is_told_before_it_is_wished_and_after_it_is_stopped(
    open_page: OpenPage, wishing: Page, acme: cast.Acme
) -> None:
    wishing.get_by_role("button", name="Stop in this browser").click()
    expect(wishing.get_by_text("They are off in this browser.")).to_be_visible()
    other: Any = open_page()
    other.context.add_init_script(NOTIFICATION)
    pages.sign_in(other)
    goto(other, "/")
    ambiguous(acme)
    expect(other.get_by_role("link", name="Needs an answer")).to_contain_text(
        "2", timeout=AT_ONCE_MS
    )
    assert (told(wishing), told(other)) == ([], [])
