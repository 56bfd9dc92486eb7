"""What must hold on every page: the policy is not broken, axe finds nothing, nothing overhangs."""

from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import Page, Request, expect

from tests import builders, cast
from tests.browser import pages
from tests.browser.conftest import OpenPage
from tests.notifications import telling
from tests.recovery import deciding

pytestmark = pytest.mark.django_db(transaction=True)

STATES = (
    "scheduled", "running", "parked", "backing_off", "interrupted", "ambiguous", "succeeded",
    "failed", "rejected", "cancelled", "expired",
)  # fmt: skip
SWAGGER = "#swagger-ui"


def login(page: Page) -> None:
    page.goto("/login")


def refusal(page: Page) -> None:
    page.goto("/login")
    page.get_by_label("Name").fill("olga")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()


def empty(page: Page) -> None:
    pages.sign_in(page, "mallory")


def full(page: Page) -> None:
    pages.sign_in(page)


def numbers(page: Page) -> None:
    """The overview with every table open."""
    pages.sign_in(page)
    for summary in page.locator("main summary").all():
        summary.click()


def not_a_member(page: Page) -> None:
    pages.sign_in(page, "nora")


def problem(page: Page) -> None:
    page.goto("/problems/fence_lost")


def reference(page: Page) -> None:
    pages.open_reference(page)
    page.locator(".opblock-summary-control").first.click()
    expect(page.locator(".opblock-body").first).to_be_visible()


def calls(page: Page) -> None:
    pages.let_in(page)
    page.goto("/calls")


def calls_none(page: Page) -> None:
    pages.let_in(page)
    page.goto("/calls?state=scheduled&agent=nobody")


def calls_refused(page: Page) -> None:
    pages.let_in(page)
    page.goto("/calls?policy=seven")


def call(page: Page) -> None:
    pages.let_in(page)
    page.goto("/calls?state=ambiguous")
    page.locator("#calls tbody a").first.click()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    page.locator("#arguments .copying > summary").click()
    expect(page.get_by_role("combobox", name="Path of the value")).to_be_visible()


def call_parked(page: Page) -> None:
    pages.let_in(page)
    page.goto("/calls?state=parked")
    page.locator("#calls tbody a").first.click()
    expect(page.get_by_role("heading", name="Handle")).to_be_visible()


def reveal(page: Page) -> None:
    """A masked field as a revealer sees it, for its minute."""
    pages.let_in(page, "rita")
    page.goto("/calls?tool=charge")
    page.locator("#calls tbody a").first.click()
    page.get_by_role("link", name="See a masked field").click()
    page.get_by_role("radio").first.check()
    page.get_by_role("textbox", name="Grounds").fill("The provider asks which token it was.")
    page.get_by_role("button", name="Show this field").click()
    expect(page.get_by_text("hunter2-hunter2")).to_be_visible()


def reveal_refused(page: Page) -> None:
    """The same page for somebody without the right: the button is off and says why."""
    pages.let_in(page)
    page.goto("/calls?tool=charge")
    page.locator("#calls tbody a").first.click()
    page.get_by_role("link", name="See a masked field").click()


def preview(page: Page) -> None:
    """The four boxes of giving up a call."""
    pages.let_in(page)
    page.goto("/inbox?tool=send_invoice")
    page.locator("main a[href*='/incidents/']").first.click()
    page.get_by_role("radio", name="Nobody can know").check()
    page.get_by_role("textbox", name="Grounds").fill("The provider keeps no records.")
    page.get_by_role("button", name="Preview").last.click()
    expect(page.get_by_role("heading", name="Afterwards")).to_be_visible()


def attempt(page: Page) -> None:
    call(page)
    page.locator("#timeline-table tbody a").first.click()
    expect(page.get_by_role("heading", name="Attempt 1")).to_be_visible()


def go_nowhere(page: Page) -> None:
    pages.let_in(page)
    page.goto("/go?q=nothing-like-it")


def workers(page: Page) -> None:
    pages.let_in(page)
    page.goto("/workers")


def deadlines(page: Page) -> None:
    pages.let_in(page)
    page.goto("/deadlines")


def audit(page: Page) -> None:
    pages.let_in(page)
    page.goto("/audit")


def audit_refused(page: Page) -> None:
    pages.let_in(page)
    page.goto("/audit?from=never")


def approvals(page: Page) -> None:
    pages.let_in(page)
    page.goto("/approvals")


def approval(page: Page) -> None:
    """One's own request: the buttons are off and say why."""
    approvals(page)
    page.locator("#approvals tbody a").first.click()
    expect(page.get_by_role("heading", name="Your answer")).to_be_visible()


def drills(page: Page) -> None:
    pages.let_in(page)
    page.goto("/drills")


def readiness(page: Page) -> None:
    pages.let_in(page)
    page.goto("/readiness")


def evidence(page: Page) -> None:
    """What a request rests on, with its body."""
    approval(page)
    page.locator("a[href*='/evidence/']").first.click()
    expect(page.get_by_role("heading", name="Body")).to_be_visible()


WATCHING = (
    workers, deadlines, audit, audit_refused, approvals, approval, evidence, drills, readiness,
)  # fmt: skip
CALLS = (
    calls, calls_none, calls_refused, call, call_parked, reveal, reveal_refused, preview, attempt,
    go_nowhere,
)  # fmt: skip


def tools(page: Page) -> None:
    pages.let_in(page)
    page.goto("/tools")


def tool(page: Page) -> None:
    pages.let_in(page)
    page.goto("/tools/send_invoice")


def policy(page: Page) -> None:
    pages.let_in(page, "alma")
    page.goto("/tools/send_invoice/policy")
    page.get_by_label("Attempts, the first").fill("9")
    page.get_by_role("button", name="Try on history").first.click()
    expect(page.get_by_role("heading", name="1 difference")).to_be_visible()


def policy_tried(page: Page) -> None:
    pages.let_in(page, "alma")
    page.goto("/tools/send_invoice/policy")
    page.get_by_role("button", name="Try on history").first.click()
    expect(page.get_by_role("heading", name="Tried on")).to_be_visible()


def budgets(page: Page) -> None:
    pages.let_in(page, "alma")
    page.goto("/budgets?all=1")


def grant_refused(page: Page) -> None:
    pages.let_in(page, "alma")
    page.goto("/budgets?scope=tool&id=nowhere#grant")
    page.get_by_label("Grounds").first.fill("Because.")
    page.get_by_role("button", name="Grant", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()


TOOLS = (tools, tool, policy, policy_tried, budgets, grant_refused)


def your_settings(page: Page) -> None:
    pages.let_in(page)
    page.goto("/settings")


def your_password(page: Page) -> None:
    pages.let_in(page)
    page.goto("/login/again?next=/settings")
    page.get_by_label("Password of").fill("wrong")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("alert")).to_be_visible()


def people(page: Page) -> None:
    pages.let_in(page, "anna")
    page.goto("/settings/people")
    page.get_by_role("textbox", name="Name").fill("olga")
    page.get_by_role("textbox", name="Grounds").fill("Once more.")
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_role("alert")).to_be_visible()


def one_person(page: Page) -> None:
    pages.let_in(page)
    page.goto("/settings/people")
    page.get_by_role("link", name="nora-of-a-long-name").click()


def keys(page: Page) -> None:
    pages.let_in(page, "anna")
    page.goto("/settings/keys")


def shown_once(page: Page) -> None:
    keys(page)
    page.get_by_role("textbox", name="Agent").fill("cora")
    page.get_by_role("textbox", name="Grounds").fill("A new agent.")
    page.get_by_role("button", name="Make the key").click()
    expect(page.locator("#secret")).to_be_visible()


def channels(page: Page) -> None:
    pages.let_in(page)
    page.goto("/settings/notifications")


def channels_refused(page: Page) -> None:
    pages.let_in(page, "anna")
    page.goto("/settings/notifications")
    page.get_by_role("textbox", name="Name").fill("night shift")
    page.get_by_role("textbox", name="Target").fill("http://10.0.0.7/hook")
    page.get_by_role("textbox", name="Grounds").fill("Nights.")
    page.get_by_role("button", name="Make the channel").click()
    expect(page.get_by_role("alert")).to_be_visible()


def channel(page: Page) -> None:
    """A channel with a message that nobody took, its log open."""
    pages.let_in(page, "anna")
    page.goto("/settings/notifications")
    page.get_by_role("link", name="pager").click()
    page.locator("main summary").first.click()
    expect(page.get_by_text("Try 1").first).to_be_visible()


def channel_secret(page: Page) -> None:
    pages.let_in(page, "anna")
    page.goto("/settings/notifications")
    page.get_by_role("link", name="pager").click()
    page.locator("#why-secret").fill("It was in a mail.")
    page.get_by_role("button", name="Renew the secret").click()
    expect(page.locator("#secret")).to_be_visible()


TOLD = (channels, channels_refused, channel, channel_secret)
PEOPLE = (your_settings, your_password, people, one_person, keys, shown_once, *TOLD)
ENTRANCES = (login, refusal, empty, full, numbers, not_a_member, problem, reference)
VIEWERS = (
    "/inbox", "/calls", "/sessions", "/tools", "/tools/send_invoice", "/tools/send_invoice/policy",
    "/budgets", "/bulk-runs/new", "/approvals", "/drills", "/settings/people", "/settings/keys",
    "/settings/notifications",
)  # fmt: skip


def as_viewer(address: str) -> Callable[[Page], None]:
    """The page of somebody who may only look: what is not allowed is off and says why."""

    def visit(page: Page) -> None:
        pages.let_in(page, "vera")
        page.goto(address)

    visit.__name__ = f"viewer {address}"
    return visit


GROUPS = {
    "entrances": ENTRANCES, "calls": CALLS, "tools": TOOLS, "watching": WATCHING, "people": PEOPLE,
    "viewer": tuple(map(as_viewer, VIEWERS)),
}  # fmt: skip
CARDS_BELOW_PX = 768
LOOKS: tuple[tuple[int, Literal["light", "dark"]], ...] = (
    (1440, "light"), (1440, "dark"), (390, "light"), (320, "dark"),
)  # fmt: skip
LARGE_TEXT_AT_PX = 1280
CLOSELY = (full, call, policy_tried, deadlines, people)
"""One page of each kind, at which axe looks with large text, and with the list of keys open too."""


@pytest.fixture
def world(acme: cast.Acme, globex: cast.Globex) -> cast.Acme:
    """A call in each state that verbs reach, and a person who belongs nowhere."""
    for state in STATES:
        recovery_class = "long_running" if state == "parked" else "side_effect"
        builders.a_call(acme, in_state=state, recovery_class=recovery_class)
    asked = deciding.ambiguous(acme, second_person="always")
    deciding.decide(acme, asked, "happened")
    cast.a_person("nora", acme.workspace)
    cast.a_person("alma", acme.workspace, "admin")
    mail = builders.a_tool(acme, "send_invoice", "side_effect")
    builders.a_call(acme, "ambiguous", tool=mail)
    charge = builders.a_tool(acme, "charge", "side_effect")
    builders.a_call(acme, "succeeded", tool=charge, arguments={"token": "hunter2-hunter2"})
    cast.a_person("rita", acme.workspace, "revealer")
    cast.a_person("nora-of-a-long-name-and-of-the-night-shift", acme.workspace, "witness")
    anna = cast.as_decider(cast.a_person("anna", acme.workspace, "admin"))
    telling.a_channel(anna, name="pager")
    builders.a_call(acme, "ambiguous", tool=mail)
    telling.a_pass(send=True)
    return acme


def test_the_policy_is_enforced_and_the_collector_sees_it(page: Page) -> None:
    page.goto("/login")
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', "
        "'<p style=\"color:red\">x</p><img src=https://elsewhere.invalid/x.png>')"
    )
    found = " ".join(pages.violations(page))
    assert "style-src-attr" in found
    assert "img-src" in found


def looked_at(page: Page, visit: Callable[[Page], None]) -> dict[str, object]:
    """What is wrong with one page: the policy's reports, refused requests, axe, overhang."""
    refused: list[str] = []

    # A page that is left takes back what it asked for; that is nobody's refusal.
    def failed(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":
            refused.append(request.url)

    page.context.clear_cookies()
    page.on("requestfailed", failed)
    visit(page)
    # Inside its frame the API reference is Swagger's own markup, which is not ours to mend.
    outside = SWAGGER if visit is reference else ""
    found: dict[str, object] = {"policy": pages.violations(page), "refused": refused}
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        found[f"overhang {width}"] = pages.overhang_px(page)
        found[f"cut off {width}"] = pages.cut_off_cards(page) if width < CARDS_BELOW_PX else []
        found[f"axe {width} {scheme}"] = pages.findings(page, outside=outside)
    page.set_viewport_size({"width": LARGE_TEXT_AT_PX, "height": 844})
    with pages.large_text(page):
        found["overhang of large text"] = pages.overhang_px(page)
        if visit in CLOSELY:
            found["axe of large text"] = pages.findings(page)
    if visit in CLOSELY:
        page.locator("#keys").evaluate("dialog => dialog.showModal()")
        found["axe beside the keys"] = pages.findings(page)
    page.remove_listener("requestfailed", failed)
    return {what: each for what, each in found.items() if each}


@pytest.mark.parametrize("group", GROUPS)
def test_axe_and_the_policy_find_nothing_on_desk_and_phone_in_light_dark_and_large_text(
    page: Page, world: cast.Acme, group: str
) -> None:
    found = {visit.__name__: looked_at(page, visit) for visit in GROUPS[group]}
    assert found == dict.fromkeys(found, {})


def test_dark_follows_the_system(open_page: OpenPage) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        page = open_page(color_scheme=scheme)
        page.goto("/login")
        grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert grounds == {"light": "rgb(247, 248, 250)", "dark": "rgb(15, 19, 24)"}


def test_a_state_is_word_shape_and_colour(page: Page, world: cast.Acme) -> None:
    calls(page)
    for badge in page.locator("#calls .state .badge").all():
        assert badge.inner_text().replace(" ", "_") in STATES
        assert badge.locator("use").get_attribute("href") == (
            f"#state-{badge.inner_text().replace(' ', '_')}"
        )
        box = badge.locator("svg").bounding_box()
        assert box is not None
        assert box["width"] >= 12


def test_the_api_reference_draws_its_operations(page: Page) -> None:
    pages.open_reference(page)
    paths = page.locator(".opblock-summary-path").all_inner_texts()
    assert any("calls" in path.replace("\u200b", "") for path in paths)


def test_an_opened_operation_of_the_api_reference_has_no_error(page: Page) -> None:
    pages.open_reference(page)
    submit = page.locator(".opblock-post").first
    submit.locator(".opblock-summary-control").click()
    expect(submit.get_by_role("heading", name="Responses")).to_be_visible()
    expect(page.locator(".errors-wrapper")).to_have_count(0)


def test_the_api_reference_follows_the_dark_scheme(open_page: OpenPage) -> None:
    page = open_page(color_scheme="dark")
    pages.open_reference(page)
    expect(page.locator("html.dark-mode")).to_be_visible()
