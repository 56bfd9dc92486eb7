"""`manage.py verify`: all tests on throw-away servers; one summary, one exit code.

Starts a PostgreSQL without fsync on a private socket and a Valkey without disk, runs pytest
over `tests/`, and writes `.verify/summary.json`. It touches no running Clearhouse: the
servers are its own and end with it, also when it is killed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree  # the file is our own pytest's

from standalone import browser, judges
from standalone.errors import Refusal
from standalone.places import ROOT
from standalone.postgres import temporary_postgres
from standalone.steps import say
from standalone.valkey import temporary_valkey

FOLDER = ROOT / ".verify"
REPORTS = UNITS, ACCEPTANCE, START = ("junit.xml", "acceptance.xml", "start.xml")
TIMED = "tests/acceptance/test_start.py"
STACKS = 2
"""How many stacks of real processes are broken side by side: their tests mostly wait."""
BROWSER_TESTS = "tests.browser"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The outcome in numbers. `skips` counts tests by the reason they gave."""

    exit_code: int
    passed: int
    failed: int
    skipped: int
    seconds: float
    browser: str | None
    browser_skipped: int
    skips: dict[str, int]

    def as_text(self) -> str:
        """One line of numbers, one per reason to skip, and a closing sentence."""
        lines = [
            f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped "
            f"in {self.seconds:.0f} s."
        ]
        if self.browser is None and self.browser_skipped:
            skipped = f"browser: {self.browser_skipped} skipped, no chromium"
            lines.append(f"{skipped}; apt install chromium")
        lines += [f"skipped {count}: {reason}" for reason, count in self.skips.items()]
        return "\n".join([*lines, self._closing()])

    def _closing(self) -> str:
        if self.exit_code == 0:
            return "Verified: every test that ran has passed."
        if self.failed:
            return "Not verified: the failures stand above, each with its own name."
        return f"Not verified: pytest ended with {self.exit_code} before its tests could tell."


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--install-browser", action="store_true", help="apt install chromium")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2, metavar="N")
    parser.add_argument("pytest", nargs="*", help="after `--`: arguments for pytest")


def run(options: argparse.Namespace) -> int:
    """Run the tests; returns pytest's exit code, 1 with a sentence when nothing could run."""
    # A plain kill must end the servers too, and remove their folders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if options.install_browser:
            browser.install()
        _summon_judges()
        return verify(options.pytest, workers=options.workers)
    except Refusal as refusal:
        say(f"Nothing was verified. {refusal}")
        return 1


def _summon_judges() -> None:
    """Install the outside judges; without them their tests are skipped, or fail where required."""
    try:
        judges.install()
    except Refusal as refusal:
        say(str(refusal))


def verify(words: list[str], *, workers: int) -> int:
    """Start servers, run pytest with `words`, summarise."""
    FOLDER.mkdir(exist_ok=True)
    reports = [FOLDER / name for name in REPORTS]
    for file in reports:
        file.unlink(missing_ok=True)
    chromium = browser.find(os.environ)
    began = time.monotonic()
    with temporary_postgres() as postgres, temporary_valkey() as valkey:
        environ = environment(postgres.url(), valkey.url, chromium)
        say(f"PostgreSQL and Valkey are up ({time.monotonic() - began:.1f} s); running pytest.")
        codes = [
            subprocess.run(words, cwd=ROOT, env=environ).returncode  # noqa: S603
            for words in commands(words, workers)
        ]
    exit_code = next((code for code in codes if code), 0)
    summary = summarise(exit_code, reports, seconds=time.monotonic() - began, chromium=chromium)
    (FOLDER / "summary.json").write_text(json.dumps(asdict(summary), indent=1) + "\n")
    print(summary.as_text(), flush=True)
    return exit_code


def commands(words: list[str], workers: int) -> list[list[str]]:
    """pytest over `tests/`, or over the paths among `words`.

    The acceptance tests come last: they promise seconds, and a machine whose cores are all busy
    with other tests would break the promise, not the product. How soon a start is ready is asked
    when nothing else runs at all.
    """
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:valkey"]
    many = [*pytest, *_spread(workers)]
    if any((ROOT / word.split("::")[0]).exists() for word in words):
        return [[*many, f"--junitxml={FOLDER / UNITS}", *words]]
    stacks = [*pytest, *_spread(min(workers, STACKS)), f"--ignore={TIMED}"]
    return [
        [*many, f"--junitxml={FOLDER / UNITS}", "--ignore=tests/acceptance", *words, "tests"],
        [*stacks, f"--junitxml={FOLDER / ACCEPTANCE}", *words, "tests/acceptance"],
        [*pytest, f"--junitxml={FOLDER / START}", *words, TIMED],
    ]


def _spread(workers: int) -> list[str]:
    return ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]


def environment(database_url: str, redis_url: str, chromium: str | None) -> dict[str, str]:
    """What the tests find: the throw-away servers, the browser, and no bootstrap."""
    return {
        **os.environ,
        "CLEARHOUSE_TEST_DATABASE_URL": database_url,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "CLEARHOUSE_BOOTSTRAP": "0",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        **({"CHROMIUM_BIN": chromium} if chromium else {}),
    }


def summarise(
    exit_code: int, files: Iterable[Path], *, seconds: float, chromium: str | None
) -> Summary:
    """Count the cases of the JUnit files; all zero where pytest wrote none."""
    written = [file for file in files if file.exists()]
    cases = [case for file in written for case in ElementTree.parse(file).iter("testcase")]  # noqa: S314
    outcomes = Counter(outcome(case) for case in cases)
    skips = [case for case in cases if outcome(case) == "skipped"]
    return Summary(
        exit_code=exit_code,
        passed=outcomes["passed"],
        failed=outcomes["failed"],
        skipped=len(skips),
        seconds=round(seconds, 1),
        browser=chromium,
        browser_skipped=sum(_is_of_browser(case.attrib) for case in skips),
        skips=dict(Counter(_reason(case) for case in skips)),
    )


def outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def _is_of_browser(attributes: Mapping[str, str]) -> bool:
    return attributes.get("classname", "").startswith(BROWSER_TESTS)


def _reason(case: ElementTree.Element) -> str:
    skipped = case.find("skipped")
    return "" if skipped is None else skipped.get("message", "")
