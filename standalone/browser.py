"""Which browser the browser tests drive, and how one is installed."""

import os
import shutil
import subprocess
from collections.abc import Mapping

from standalone.errors import Refusal

NAMES = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "CLEARHOUSE_REQUIRE_BROWSER"  # "1" turns skipped browser tests into failures


def find(environ: Mapping[str, str]) -> str | None:
    """$CHROMIUM_BIN, then the names on the PATH, then Playwright's own; None without any."""
    given = environ.get("CHROMIUM_BIN")
    if given:
        return given
    found = (shutil.which(name, path=environ.get("PATH")) for name in NAMES)
    return next((path for path in found if path), None) or _playwrights_own()


def _playwrights_own() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if os.path.exists(path) else None


def install() -> None:
    """Install Debian's chromium; needs root. Raises Refusal with what apt said."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Refusal(
            "`--install-browser` needs root and apt. Install Chromium yourself, or set "
            "CHROMIUM_BIN to the one you have."
        )
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (
        ["update"],
        ["install", "-y", "--no-install-recommends", "chromium", "libatomic1"],
    ):
        done = subprocess.run(  # noqa: S603
            ["apt-get", "-qq", *words],  # noqa: S607
            env=environ,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Refusal(f"`apt-get {words[0]}` failed: {done.stderr.strip()}")
