"""Chromium against a real server: uvicorn with the ASGI application, on this run's database.

No browser on this machine: every test here is skipped with one reason, or fails with it where
`CLEARHOUSE_REQUIRE_BROWSER=1` says that a browser must be there. Playwright's sync interface
keeps an event loop running in this thread, so it lives for one module and no longer.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from django.conf import settings
from django.db import connection
from playwright.sync_api import Browser, Page, sync_playwright

from standalone import browser as browsers
from standalone.ports import free_port
from tests import cast, waits
from tests.browser import pages

ROOT = Path(__file__).parents[2]
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
NONE_FOUND = "no chromium; apt install chromium, or set CHROMIUM_BIN"
LIMIT_MS = 15_000

OpenPage = Callable[..., Page]


@cache
def _chromium() -> str | None:
    return browsers.find(os.environ)


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The browser's program; skips, or fails where one is required."""
    path = _chromium()
    if path is None:
        (pytest.fail if os.environ.get(browsers.REQUIRED) == "1" else pytest.skip)(NONE_FOUND)
    assert path is not None
    return path


def _database_url() -> str:
    known = connection.settings_dict
    user, password = quote(known["USER"], safe=""), quote(known["PASSWORD"] or "", safe="")
    host = quote(known["HOST"] or "", safe="")
    return f"postgresql://{user}:{password}@/{known['NAME']}?host={host}&port={known['PORT']}"


def _answers(address: str) -> bool:
    try:
        with urlopen(f"{address}/healthz", timeout=1):
            return True
    except OSError:
        return False


class Web:
    """The web process on a port that it keeps, stopped and started like a deployment does."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._log = folder / "log"
        self._environ = os.environ | {
            "DATABASE_URL": _database_url(),
            "REDIS_URL": settings.ENVIRONMENT.redis_url,
            "CLEARHOUSE_DATA": str(folder),
            "CLEARHOUSE_DEBUG": "false",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = (sys.executable, "-m", "uvicorn", "config.asgi:application")
        with self._log.open("ab") as sink:
            self._process = subprocess.Popen(
                [*command, "--log-level", "warning", "--port", str(self.port),
                 "--timeout-graceful-shutdown", "2"],
                cwd=ROOT, env=self._environ, stdout=sink, stderr=sink,
            )  # fmt: skip
        waits.until(
            lambda: _answers(self.address), what=f"the web to answer ({self._log})", limit_s=60
        )

    def stop(self) -> None:
        """End it; once ended it stays so."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=20)
            self._process = None


@pytest.fixture(scope="session")
def address(
    chromium_path: str, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A running Clearhouse, as `http://127.0.0.1:<port>`."""
    web = Web(tmp_path_factory.mktemp("web"))
    try:
        web.start()
        yield web.address
    finally:
        web.stop()


@pytest.fixture(scope="module")
def chromium(chromium_path: str) -> Iterator[Browser]:
    """One browser for the tests of a module."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Django refuses its ORM where an event loop runs; ours runs for Playwright alone.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        found = playwright.chromium.launch(executable_path=chromium_path, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def open_page(chromium: Browser, address: str) -> Iterator[OpenPage]:
    """Open a page of its own browser context; takes Playwright's options of a context."""
    opened = []

    def open_one(**options: Any) -> Page:
        context = chromium.new_context(**{"base_url": address} | options)
        opened.append(context)
        context.set_default_timeout(LIMIT_MS)
        pages.collect_violations(context)
        return context.new_page()

    yield open_one
    for context in opened:
        context.close()


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """A page of a fresh context, 1440 px wide and light."""
    return open_page(viewport={"width": 1440, "height": 900}, color_scheme="light")


@pytest.fixture
def signed_in(page: Page, acme: cast.Acme) -> Page:
    """Olga of Acme has signed in and sees the start page."""
    pages.sign_in(page)
    return page
