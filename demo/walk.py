"""An operator's walk through the demo, from alarm to resolution, by what a page shows alone.

Each step finds its way by headings, labels and buttons, as a person does, and keeps a picture.
The pictures of the tour in `docs/` are taken here, so that they cannot show what no page shows.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import Locator, Page, expect

from ledger import ids
from ledger.models import ToolCall
from sandbox import addresses

MORE = "A result that was found, an error, or a handle"
RECORD = '{"refund": "rf-20417", "payee": "J. Burke", "amount_cents": 4990, "booked": "16:02"}'


@dataclass(frozen=True, slots=True)
class Walk:
    """One walk: the browser's page and the folder of its pictures."""

    page: Page
    folder: Path

    def look(self, name: str, *, at: Locator | None = None) -> None:
        """Keep a picture of what stands in the window, scrolled to this place."""
        if at is None:
            self.page.evaluate("scrollTo(0, 0)")
        else:
            at.scroll_into_view_if_needed()
            at.evaluate("each => scrollBy(0, each.getBoundingClientRect().top - 16)")
        self.page.screenshot(path=self.folder / f"{name}.png", animations="disabled")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name).first.click()


def steps() -> list[Callable[[Walk], None]]:
    """The walk in order; every step begins where the one before ended."""
    return [alarm, confirmed, replayed, denied, resumed, in_bulk, policy, afterwards]


def alarm(walk: Walk) -> None:
    """The overview says what needs a person; the inbox lists it."""
    page = walk.page
    page.goto("/")
    expect(page.locator(".chart svg").first).to_be_visible()
    walk.look("overview")
    page.get_by_role("link", name="Open the inbox").click()
    expect(page.get_by_role("heading", name="Needs an answer")).to_be_visible()
    walk.look("inbox")


def confirmed(walk: Walk) -> None:
    """J. Burke's refund: the shop's export has it, so it happened."""
    _open(walk, "J. Burke")
    walk.look("incident")
    _put_on_file(walk, "happened", "The shop's export of refunds.", record=RECORD)
    _answer(walk, "Yes, it happened", "It is in the shop's export.")
    walk.page.get_by_text(MORE).click()
    walk.page.get_by_label("Its result is in this evidence").select_option(index=1)
    walk.press("Preview")
    expect(walk.page.get_by_role("heading", name="Model", exact=True)).to_be_visible()
    walk.look("preview")
    _record(walk)


def replayed(walk: Walk) -> None:
    """The same refund, asked for again, never ran; a mail sent twice has the first one's result."""
    for tool, state in (("shop.refund", "cancelled"), ("sandbox.send_mail", "succeeded")):
        (twin,) = ToolCall.objects.filter(tool=tool, twin_of__isnull=False)
        walk.page.goto(f"/calls/{ids.shown('call', twin.id)}")
        # The hold ends with the next sweep, and the page of a paused call asks every ten seconds.
        expect(walk.page.locator(".labels").first).to_contain_text(state, timeout=15_000)


def denied(walk: Walk) -> None:
    """The newsletter: the mailbox has no such message, so it is run once more."""
    _open(walk, "subscribers@example.org")
    _put_on_file(walk, "did_not_happen", "The mail server's log and mailbox: no such message.",
                 reference="log of 16:00 to 16:30")  # fmt: skip
    _answer(walk, "No, it did not happen: run it once more", "It never left the house.")
    walk.press("Preview")
    _record(walk)


def resumed(walk: Walk) -> None:
    """The loop for the book fair is being rendered; the renderer's list has its handle."""
    call = _open(walk, "pause_before_handle_s")
    with urlopen(
        f"http://{addresses.HOST}:{addresses.known().http}/renders?marker={ids.marker(call.id)}"
    ) as answer:
        (render,) = json.load(answer)
    _answer(walk, "Still going: follow its handle", "The renderer's list shows it at work.")
    walk.page.get_by_text(MORE).click()
    walk.page.get_by_label("Handle found outside").fill(render["handle"])
    walk.press("Preview")
    _record(walk)


def in_bulk(walk: Walk) -> None:
    """The other refunds, each with its own evidence, decided in one run."""
    page = walk.page
    for payee in ("N. Daly", "L. Keane"):
        _open(walk, payee)
        _put_on_file(walk, "happened", "The shop's export of refunds has it.",
                     reference="export of 16:40")  # fmt: skip
    page.goto("/inbox?tool=shop.refund")
    for box in page.locator("main table").get_by_role("checkbox").all():
        box.check()
    walk.press("Decide about them together")
    page.get_by_label("Yes, it happened").check()
    page.get_by_label("Grounds").fill("Both are in the shop's export.")
    walk.press("Freeze the list")
    expect(page.get_by_role("heading", name="Will run")).to_be_visible()
    walk.press("Start")
    expect(page.get_by_text("Finished")).to_be_visible(timeout=60_000)
    walk.look("bulk-run")


def policy(walk: Walk) -> None:
    """A looser policy for refunds is tried on history, and a safer one is saved."""
    page = walk.page
    page.goto("/tools/shop.refund/policy")
    page.get_by_label("Class", exact=True).select_option("idempotent_write")
    page.get_by_label("Key template").fill("refund:{payee}")
    walk.press("Try on history")
    expect(page.get_by_role("heading", name="Tried on")).to_be_visible()
    walk.look("policy")
    page.goto("/tools/shop.refund/policy")
    page.get_by_label("Second person").select_option("always")
    walk.press("Try on history")
    expect(page.get_by_role("heading", name="Tried on")).to_be_visible()
    grounds = page.get_by_label("Grounds", exact=True).first
    grounds.fill("Money leaves the house: two people look.")
    walk.press("Save as a new version")
    expect(page.get_by_text("version 3").first).to_be_visible()


def afterwards(walk: Walk) -> None:
    """The conversation of the newsletter, with what its model was told."""
    page = walk.page
    page.goto("/sessions")
    row = page.get_by_role("row").filter(has_text="Quarterly newsletter")
    row.get_by_role("link").first.click()
    heading = page.get_by_role("heading", name="Turn 2")
    expect(heading).to_be_visible()
    walk.look("session", at=heading)


def _open(walk: Walk, argument: str) -> ToolCall:
    """Open the incident of the ambiguous call that has this among its arguments."""
    waiting = ToolCall.objects.filter(state="ambiguous")
    call = next(each for each in waiting if argument in str(each.arguments))
    walk.page.goto(f"/calls/{ids.shown('call', call.id)}")
    walk.page.get_by_role("link", name="Open its incident").first.click()
    expect(walk.page.get_by_role("heading", name="Did the effect happen?")).to_be_visible()
    return call


def _put_on_file(
    walk: Walk, finding: str, message: str, *, record: str = "", reference: str = ""
) -> None:
    page = walk.page
    if page.locator("#adding").get_attribute("open") is None:
        page.locator("#adding > summary").click()
    page.get_by_label("What it says of the effect").select_option(finding)
    page.get_by_label("What was looked at, and where").fill(message)
    page.get_by_label("What it is", exact=True).select_option("document" if record else "checked")
    page.get_by_label("The record itself, pasted").fill(record)
    page.get_by_label("Link, id or handle").fill(reference)
    walk.press("Put it on the file")
    expect(page.get_by_text(message).first).to_be_visible()


def _answer(walk: Walk, title: str, grounds: str) -> None:
    page = walk.page
    page.get_by_label(title, exact=True).check()
    for piece in page.locator("#evidence input[type=checkbox]").all():
        piece.check()
    page.get_by_label("Grounds: why, in one sentence").fill(grounds)


def _record(walk: Walk) -> None:
    """Press the deed that the preview names, typed where it must be, and see it recorded."""
    confirm = walk.page.locator("#confirm")
    if confirm.count():
        confirm.fill(walk.page.locator("label[for=confirm] code").inner_text())
    walk.page.locator("button[name=step][value=record]").click()
    expect(walk.page.locator("#said")).to_contain_text("Recorded")
