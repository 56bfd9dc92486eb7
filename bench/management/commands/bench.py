"""`manage.py bench`: this machine's figures, in interleaved rounds; calls beside plain Celery."""

import json
import statistics
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from bench import contenders, pages, recovery, transcripts

WIDTHS = (1, 8, 64)
A_ROUND, SETTLED = 2000, 1_000_000
"""How many calls, where nobody says how many."""


class Command(BaseCommand):
    help = "Measure calls and recovery after kill -9, transcripts, or pages with a lot to show."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("scenario", nargs="?", choices=("calls", "transcripts", "pages"),
                            default="calls")  # fmt: skip
        parser.add_argument("--rounds", type=int, default=3,
                            help="pages: how often each is timed (3)")  # fmt: skip
        parser.add_argument("--calls", type=int, default=0,
                            help="a round at 64 in flight (2000); pages: (1000000)")  # fmt: skip
        parser.add_argument("--kills", type=int, default=3)
        parser.add_argument("--incidents", type=int, default=10_000, help="pages: open ones")
        parser.add_argument("--data", type=Path, metavar="DIR",
                            help="pages: a folder to fill once and read again")  # fmt: skip
        parser.add_argument("--only", default="", metavar="TEXT",
                            help="pages: addresses that hold this text")  # fmt: skip
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["scenario"] == "transcripts":
            report = {"commit": _commit()} | transcripts.measure(options["rounds"])
            self.stdout.write(json.dumps(report) if options["json"] else transcripts.table(report))
        elif options["scenario"] == "pages":
            self._pages(options)
        else:
            self._calls(options)

    def _pages(self, options: dict[str, Any]) -> None:
        report = {"commit": _commit()} | pages.measure(
            folder=options["data"], calls=options["calls"] or SETTLED, only=options["only"],
            incidents=options["incidents"], rounds=options["rounds"], tell=self.stderr.write,
        )  # fmt: skip
        self.stdout.write(json.dumps(report) if options["json"] else pages.table(report))
        if report["above"]:
            sys.exit(1)

    def _calls(self, options: dict[str, Any]) -> None:
        with contenders.clearhouse() as ours, contenders.celery() as theirs:
            rounds = self._rounds([ours, theirs], options["rounds"], options["calls"] or A_ROUND)
            root = ours.roots[0]
            kills = range(options["kills"])
            again = [recovery.seconds_to_running_again(ours.facts, root) for _ in kills]
            flagged = [recovery.seconds_to_flagged(ours.facts, root) for _ in kills]
        report = {
            "commit": _commit(),
            "rounds": rounds,
            "medians": _medians(rounds),
            "kill_to_running_again_s": [round(each, 2) for each in again],
            "kill_to_flagged_s": [round(each, 2) for each in flagged],
        }
        self.stdout.write(json.dumps(report) if options["json"] else _table(report))

    def _rounds(
        self, sides: list[contenders.Contender], count: int, calls: int
    ) -> list[dict[str, Any]]:
        measured = []
        with tempfile.TemporaryDirectory() as folder:
            for number in range(count):
                for width in WIDTHS:
                    for side in sides:
                        probe = contenders.fsync_us(Path(folder))
                        figures = side.run(max(200, calls * width // 64), width)
                        row = {"round": number + 1, "side": side.name, "in_flight": width,
                               "fsync_us": round(probe)} | figures  # fmt: skip
                        measured.append(row)
                        self.stderr.write(json.dumps(row))
        return measured


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 found on the path
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or "unknown"


def _medians(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for width in WIDTHS:
        for side in ("clearhouse", "celery"):
            of = [row for row in rounds if (row["side"], row["in_flight"]) == (side, width)]
            names = ("calls_per_s", "p50_ms", "p99_ms", "cpu_s_per_1000")
            rows.append(
                {"side": side, "in_flight": width}
                | {name: round(statistics.median(row[name] for row in of), 2) for name in names}
            )
    return rows


def _table(report: dict[str, Any]) -> str:
    titles = ("in flight", "side", "calls/s", "p50 ms", "p99 ms", "CPU s/1000")
    lines = ["{:>9} {:<11} {:>9} {:>8} {:>8} {:>11}".format(*titles)]
    for row in report["medians"]:
        lines.append(
            f"{row['in_flight']:>9} {row['side']:<11} {row['calls_per_s']:>9} {row['p50_ms']:>8} "
            f"{row['p99_ms']:>8} {row['cpu_s_per_1000']:>11}"
        )
    for name in ("kill_to_running_again_s", "kill_to_flagged_s"):
        lines.append(f"{name}: {', '.join(str(each) for each in report[name])}")
    lines.append(f"Commit {report['commit']}. Quote ratios within this run, not single figures.")
    return "\n".join(lines)
