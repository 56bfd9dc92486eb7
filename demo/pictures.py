"""Pictures of pages as a person sees them: Chromium, signed in, light and dark, wide and narrow."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, sync_playwright

from standalone import browser

FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
LIMIT_MS = 20_000


class NoBrowser(RuntimeError):
    """Pictures need Chromium: `apt install chromium`, or name one in CHROMIUM_BIN."""


@dataclass(frozen=True, slots=True)
class Look:
    """A width in pixels and a colour scheme."""

    width: int
    scheme: Literal["light", "dark"]
    height: int = 900

    @property
    def name(self) -> str:
        return f"{self.width}-{self.scheme}"


LOOKS = (Look(1440, "light"), Look(1440, "dark"), Look(390, "light"), Look(390, "dark"))


@contextmanager
def signed_in(address: str, name: str, password: str) -> Iterator[Page]:
    """A page of a browser in which this person has signed in."""
    # Django refuses its ORM where an event loop runs; ours runs for Playwright alone.
    os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    program = browser.find(os.environ)
    if program is None:
        raise NoBrowser(NoBrowser.__doc__)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        page = chromium.new_context(base_url=address).new_page()
        page.set_default_timeout(LIMIT_MS)
        page.goto("/login")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/")
        yield page
        chromium.close()


def take(
    page: Page, sights: Iterable[tuple[str, str]], looks: Iterable[Look], folder: Path
) -> Iterator[Path]:
    """Open every sight and keep one picture of the whole page for each look."""
    folder.mkdir(parents=True, exist_ok=True)
    looks = tuple(looks)
    for name, address in sights:
        page.goto(address)
        for look in looks:
            yield _picture(page, look, folder / f"{name}-{look.name}.png")


def _picture(page: Page, look: Look, file: Path) -> Path:
    page.set_viewport_size({"width": look.width, "height": look.height})
    page.emulate_media(color_scheme=look.scheme)
    page.screenshot(path=file, full_page=True, animations="disabled")
    return file
