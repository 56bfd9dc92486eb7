"""What the browser tests do and see on a page: sign in, the policy's violations, axe's findings."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from playwright.sync_api import BrowserContext, Page, expect

from tests import cast

VENDOR = Path(__file__).parent / "vendor"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLLECTOR = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""


def let_in(page: Page, name: str = "olga") -> None:
    """Let the browser hold a login of this person.

    The form itself is tested by `test_sign_in`; every other test would only wait for it.
    """
    key = cast.a_login(name)
    address = page.request.get("/healthz").url
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": address}])


def sign_in(page: Page, name: str = "olga") -> None:
    """Let this person in, and open the start page."""
    let_in(page, name)
    page.goto("/")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()


def open_reference(page: Page) -> None:
    """Open the API reference and wait until its operations are drawn."""
    page.goto("/api/v1/docs")
    expect(page.locator(".opblock").first).to_be_visible()


def collect_violations(context: BrowserContext) -> None:
    """Let every page of a context keep what the content security policy stopped."""
    context.add_init_script(COLLECTOR)


def violations(page: Page) -> list[str]:
    """What the policy stopped on this page so far."""
    # A report is an event of its own: it comes before the second frame after its cause.
    page.evaluate("new Promise((ok) => requestAnimationFrame(() => requestAnimationFrame(ok)))")
    found: list[str] = page.evaluate("window.violations")
    return found


@cache
def _axe() -> str:
    return (VENDOR / "axe.min.js").read_text()


def findings(page: Page, *, outside: str = "") -> list[str]:
    """What axe-core finds by all A and AA rules and best practice; `outside` leaves a part out."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_axe())
    scope: dict[str, Any] = {"include": [["html"]], "exclude": [[outside]] if outside else []}
    report = page.evaluate(
        "([scope, tags]) => axe.run(scope, {runOnly: tags, resultTypes: ['violations']})",
        [scope, TAGS],
    )
    assert report["testEngine"]["version"] == "4.14.1"
    return [
        f"{each['impact']} {each['id']}: {node['html'][:200]}"
        for each in report["violations"]
        for node in each["nodes"]
    ]


@contextmanager
def large_text(page: Page) -> Iterator[None]:
    """A page with its text at twice the size (WCAG 2.2, 1.4.4); the window stays as wide."""
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    yield
    page.evaluate("document.documentElement.style.fontSize = ''")


def overhang_px(page: Page) -> int:
    """How many pixels the page can be scrolled sideways."""
    found: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return found


def cut_off_cards(page: Page) -> list[str]:
    """The tables that a phone draws as blocks, and that must be scrolled sideways all the same."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('.cards, .stacked')].map(each => each.closest('.scroll'))"
        ".filter(each => each && each.scrollWidth > each.clientWidth)"
        ".map(each => each.getAttribute('aria-label'))"
    )
    return found


def rows(page: Page) -> list[list[str]]:
    """The texts of the latest calls, row by row."""
    found: list[list[str]] = page.locator("#calls tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return found
