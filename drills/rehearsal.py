"""The operator tests, stage by stage, on one stack whose ended programs are started again."""

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drills.places import own_stack
from drills.report import Finding, Report
from drills.rows import TESTS
from drills.rows.row import Row, Test, played
from drills.stack import Stack
from drills.waits import NotInTime, until
from standalone.steps import say

VERIFY_LIMIT_S = 15.0
# A person decides here, and a lost handle is no handle: what a machine could prove is not asked.
NO_PROOF: dict[str, dict[str, Any]] = {
    "sandbox.send_mail": {"probe": None, "in_flight_grace_s": 4.0},
    "sandbox.render": {"probe": None, "repeat_start": False, "recovery_window_s": 5.0},
}


def run(options: argparse.Namespace, folder: Path) -> Report:
    """Play the tests, all or those named, and verify the ledger afterwards."""
    began = time.monotonic()
    chosen = [test for test in TESTS if not options.only or test.number in options.only]
    say("Starting PostgreSQL, Valkey, web, workers, watchdog and sandbox of its own.")
    with own_stack(folder, points=True) as stack:
        say(f"Ready after {time.monotonic() - began:.1f} s; {len(chosen)} tests.")
        for tool, knobs in NO_PROOF.items():
            stack.desk.ask("policies", workspace="swift", timeouts={}, tools=[tool], **knobs)
        since = datetime.now(UTC).isoformat()
        rows = rehearse(stack, folder, chosen)
        findings = verified(stack, since)
    rows.sort(key=lambda row: (int(row.number[0]), row.number))
    return Report(
        kind="tests",
        seconds=round(time.monotonic() - began, 1),
        rows=rows,
        findings=findings,
        again="python3 manage.py drill"
        + "".join(f" --only {row.number}" for row in rows if row.passed is False),
    )


def rehearse(stack: Stack, folder: Path, tests: Sequence[Test]) -> list[Row]:
    """Play each stage's tests at once; between them everything is whole again."""
    rows: list[Row] = []
    for stage in sorted({test.stage for test in tests}):
        of_stage = [test for test in tests if test.stage == stage]
        stack.tend()
        stack.until_ready()
        with ThreadPoolExecutor(len(of_stage)) as pool:
            playing = [pool.submit(_told, test, stack, folder) for test in of_stage]
            _tend_until_done(stack, playing)
        rows += [each.result() for each in playing]
    return rows


def _told(test: Test, stack: Stack, folder: Path) -> Row:
    row = played(test, stack, folder)
    say(f"{'passed' if row.passed else 'FAILED'}  {row.number:<3} {row.name} ({row.seconds} s)")
    return row


def _tend_until_done(stack: Stack, playing: list["Future[Row]"]) -> None:
    """Programs are started by the main thread only: the kernel ends them with their starter."""
    while wait(playing, timeout=0.1).not_done:
        stack.tend()


def verified(stack: Stack, since: str) -> list[Finding]:
    """Every invariant that is broken by a call of this drill."""
    stack.tend()
    stack.until_ready()
    found: list[str] = []

    def is_clean() -> bool:
        found[:] = stack.desk.ask("verify", since=since)
        return not found

    try:
        # Liveness is judged a little later where a program has just been started again.
        until(is_clean, "every invariant holds", VERIFY_LIMIT_S, every_s=0.5)
    except NotInTime:
        return [Finding(kind="invariant", sentence=sentence) for sentence in found]
    return []
