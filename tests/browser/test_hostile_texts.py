"""Texts from outside, as arguments, results, errors, messages, evidence and grounds: never markup.

Every text of the corpus's markup and imitation stands on the pages that show it; nothing runs,
nothing is fetched from elsewhere, and no element carries an attribute that a text brought (S5).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Dialog, Page, expect

from ledger import ids, strictjson
from ledger.models import Evidence, ToolCall
from ledger.vocabulary import Cause, Effect, Meaning
from recovery import statements
from tests import builders, cast, corpus_loader
from tests.browser import pages
from tests.ledger.saying import a_call_of, by_user, reply, say
from tests.recovery.deciding import incident_of

pytestmark = pytest.mark.django_db(transaction=True)

LONGEST = 2_000
TEXTS = [
    text
    for entry in (*corpus_loader.load("markup"), *corpus_loader.load("imitation"))
    if len(entry.bytes()) <= LONGEST and "\x00" not in (text := entry.bytes().decode())
]
LONG = [
    entry.bytes().decode()
    for entry in corpus_loader.load("imitation")
    if len(entry.bytes()) > LONGEST
]
BROUGHT = """
[...document.querySelectorAll("*")].flatMap((element) => [...element.attributes]
  .filter(({ name, value }) => name.startsWith("on") || name === "style" || name === "srcdoc"
    || (/^(data-)?hx-|^(src|href|action|formaction|poster|data)$/.test(name)
        && !/^(\\/|#|\\?|$)/.test(value)
        && !/^(every|focus|outer|this|true|[.#\\w-]+$|\\{)/.test(value)))
  .map(({ name, value }) => `${element.tagName} ${name}=${value.slice(0, 60)}`))
"""


def test_the_corpus_brings_more_than_a_hundred_texts() -> None:
    assert len(TEXTS) > 100


@dataclass
class Noise:
    """What a text made the browser do: dialogs, requests to elsewhere."""

    origin: str = ""
    heard: list[str] = field(default_factory=list)

    def dialog(self, dialog: Dialog) -> None:
        self.heard.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def request(self, url: str) -> None:
        if self.origin and not url.startswith((self.origin, "data:image/svg")):
            self.heard.append(url)


@pytest.fixture
def noise(page: Page, acme: cast.Acme) -> Noise:
    found = Noise()
    page.on("dialog", found.dialog)
    page.on("request", lambda request: found.request(request.url))
    page.on("popup", lambda popup: found.heard.append(f"popup {popup.url}"))
    pages.sign_in(page)
    found.origin = page.url.rstrip("/")
    return found


@dataclass(frozen=True)
class World:
    """Calls whose every free text is the corpus."""

    succeeded: ToolCall
    failed: ToolCall
    ambiguous: ToolCall


@pytest.fixture
def world(acme: cast.Acme) -> World:
    session = builders.a_session(acme, label=TEXTS[0], host=TEXTS[1], model=TEXTS[2])
    turn = builders.a_turn(session)
    for at in range(0, len(TEXTS), 50):
        say(turn, *(by_user(text) for text in TEXTS[at : at + 50]))
    send = builders.a_tool(acme, recovery_class="side_effect")
    said = {"texts": TEXTS}
    recorded = [
        reply(turn, a_call_of(send.name, f"toolu_{at}", said | {"at": at}), model_step=at)
        for at in range(3)
    ]
    done, wrong, unknown = (builders.fresh(each.calls[0].call_id) for each in recorded)
    builders.claimed(done)
    builders.cross(done)
    builders.settle(done, {"texts": TEXTS, **{text: at for at, text in enumerate(TEXTS)}})
    builders.claimed(wrong)
    builders.report(wrong, Cause.VALIDATION, Meaning.REFUSED, message="\n".join(TEXTS))
    builders.WALKS[builders.CallState("ambiguous")](unknown)
    for text, body in [*((each, each) for each in TEXTS[:40]), (TEXTS[0], "\n".join(TEXTS))]:
        statements.state_evidence(
            call_id=unknown.id,
            found=statements.Found(
                kind="statement", finding="unknown", message=text, reference=text[:200], body=body
            ),
            by=cast.as_decider(acme.olga),
        )
    return World(*map(builders.fresh, (done, wrong, unknown)))


Address = Callable[[World], str]


def call_page(of: str) -> Address:
    return lambda world: f"/calls/{ids.shown('call', getattr(world, of).id)}"


def attempt_page(of: str) -> Address:
    return lambda world: f"{call_page(of)(world)}/attempts/1"


def session_page(word: str = "") -> Address:
    return lambda world: f"/sessions/{ids.shown('session', world.ambiguous.session_id)}{word}"


def incident_page(word: str = "") -> Address:
    return lambda world: (
        f"/incidents/{ids.shown('incident', incident_of(world.ambiguous).id)}{word}"
    )


def evidence_page(world: World) -> str:
    """The page of the piece whose body is the whole corpus."""
    piece = Evidence.objects.filter(call=world.ambiguous).latest("at")
    return f"/evidence/{ids.shown('evidence', piece.id)}"


PAGES: dict[str, Address] = {
    "succeeded": call_page("succeeded"),
    "failed": call_page("failed"),
    "ambiguous": call_page("ambiguous"),
    "attempt": attempt_page("failed"),
    "incident": incident_page(),
    "resolution": incident_page("/resolution"),
    "evidence": evidence_page,
    "session": session_page(),
    "rendering": session_page("/rendering"),
    "binding": session_page("/binding"),
    "sessions": lambda world: "/sessions",
    "inbox": lambda world: "/inbox",
    "audit": lambda world: "/audit",
}


def unfold(page: Page) -> None:
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")


def swapped(page: Page) -> None:
    """Every live part has been asked for and put in place once more."""
    parts = page.locator("[data-live-part]").count()
    if parts:
        with page.expect_response(lambda answer: "/parts/" in answer.url):
            page.locator("body").press("r")


def alive(page: Page, noise: Noise) -> list[str]:
    """What became of the texts of this page, beyond being read."""
    brought: list[str] = page.evaluate(BROUGHT)
    elements = page.locator("main :is(script, iframe, object, embed, img, video, link, base)")
    return [*noise.heard, *pages.violations(page), *brought, *elements.all_inner_texts()]


def test_no_text_becomes_markup_or_behaviour_on_any_page(
    page: Page, noise: Noise, world: World
) -> None:
    found = {}
    for name, where in PAGES.items():
        page.goto(where(world))
        unfold(page)
        swapped(page)
        unfold(page)
        found[name] = alive(page, noise)
    assert found == dict.fromkeys(PAGES, [])


def test_what_looks_for_living_texts_sees_one(page: Page, noise: Noise) -> None:
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', "
        "'<img src=//evil.example/x onerror=alert(1)><b data-hx-get=//evil.example>x</b>')"
    )
    assert len(alive(page, noise)) > 3


def test_a_pasted_transcript_of_the_corpus_is_repaired_as_text(page: Page, noise: Noise) -> None:
    rows = [{"role": "user", "content": text} for text in TEXTS]
    page.goto("/transcripts/repair")
    page.get_by_label("Transcript").fill(strictjson.canonical(rows).decode())
    page.get_by_role("button", name="Show what a repair does").click()
    page.get_by_role("heading", name="Before and after").wait_for()
    unfold(page)
    assert alive(page, noise) == []


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:20])
def test_a_long_text_pushes_nothing_that_decides_out_of_its_frame(
    page: Page, noise: Noise, acme: cast.Acme, text: str
) -> None:
    call = builders.a_call(acme, "ambiguous", arguments={"note": text, "amount": "999999.00"})
    assert call.effect == Effect.POSSIBLE
    page.goto(f"/incidents/{ids.shown('incident', incident_of(call).id)}")
    assert noise.heard == []
    amount = page.locator("#arguments .leaf", has=page.get_by_text("amount", exact=True))
    expect(amount).to_contain_text("999999.00")
    assert page.evaluate("document.documentElement.scrollHeight") < 12_000
    assert Evidence.objects.filter(call=call).count() <= 1
