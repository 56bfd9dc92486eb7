"""`manage.py drill`: rehearse failures on throw-away servers; exit 0 only if all went well.

Nothing of an installation that runs is touched: servers, ports, database and programs are the
drill's own, in a temporary folder. What was found is kept below the state folder, in `drills/`.
Source: R160; reliability, section 7.
"""

import argparse
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from drills import chaos, planted, rehearsal
from drills.places import report_folder
from drills.report import Report
from standalone.errors import Refusal
from standalone.places import state_folder
from standalone.steps import say

KINDS: dict[str, Callable[[argparse.Namespace, Path], Report]] = {
    "tests": rehearsal.run,
    "chaos": chaos.run,
    "planted": planted.run,
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", nargs="?", choices=tuple(KINDS), default="tests",
        help="tests: the operator tests (default); chaos: seeded faults under load; "
        "planted: known bugs, each of which must be caught",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the report as one JSON document")
    parser.add_argument("--data", type=Path, metavar="DIR", help="state folder (.clearhouse)")
    parser.add_argument("--only", action="append", metavar="NAME", help="these tests or bugs only")
    parser.add_argument("--seed", type=int, help="chaos: the script of load and faults")
    parser.add_argument("--calls", type=int, default=600, metavar="N", help="chaos: how many calls")
    parser.add_argument("--faults", type=int, default=120, metavar="N", help="chaos: how many")


def run(options: argparse.Namespace) -> int:
    """Rehearse, keep the report and print it; returns 0, or 1 for a finding or a refusal."""
    # A plain kill must end the servers too, and remove their folders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10_000)
    folder = report_folder(options.data or state_folder(), options.kind)
    try:
        report = KINDS[options.kind](options, folder)
    except Refusal as refusal:
        say(f"Nothing was rehearsed. {refusal}")
        return 1
    report.keep(folder)
    print(report.as_json() if options.json else report.as_text(folder), flush=True)
    return 0 if report.passed else 1
