"""One chaos drill from its start to its report."""

import argparse
import json
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drills import checker, session_checker
from drills.chaos import faults as scripts
from drills.chaos import figures, intents, relays
from drills.chaos.clerks import Clerks
from drills.chaos.load import Asked, Load
from drills.chaos.nemesis import Nemesis
from drills.chaos.sessions import Sessions
from drills.checker import Answered, LedgerCall
from drills.places import own_stack
from drills.rehearsal import verified
from drills.report import Finding, Report
from drills.session_checker import SessionsSeen
from drills.stack import Stack
from standalone.steps import say

WORKSPACE = "swift"
TIMEOUTS = {"heartbeat_s": 3.0, "schedule_to_start_s": 50.0}
# Payments and mails have no probe here: what the machine could prove, a person has to decide.
SIDE_EFFECTS: dict[str, Any] = {"probe": None, "in_flight_grace_s": 0.5}
WIDTHS = {"after_crossing": 0.02, "before_effect": 0.02, "before_result_write": 0.02}
QUIET_LIMIT_S = 120.0
STEP_S = 0.05
TELL_EVERY_S = 10.0
PROMISES = (
    "lost", "doubled", "false_success", "false_failure", "half_written", "stuck",
    "lost_by_compaction", "no_owner", "two_owners", "misplaced_result", "refused_render",
)  # fmt: skip


def run(options: argparse.Namespace, folder: Path) -> Report:
    """Play the seed's script and judge what it came to."""
    began = time.monotonic()
    say(f"Chaos with seed {options.seed}: {options.calls} calls, {options.faults} faults.")
    with own_stack(folder, points=True, linked=True, widths=WIDTHS) as stack:
        _patient(stack)
        drill = Drill(stack, options.seed, options.calls, options.faults)
        say(f"Ready after {time.monotonic() - began:.1f} s.")
        drill.play()
        drill.wait_until_quiet()
        found = drill.judged()
        numbers = drill.figures(found)
        _keep(folder, drill, found)
    again = f"drill chaos --calls {options.calls} --faults {options.faults} --seed {options.seed}"
    return Report(
        kind="chaos",
        seconds=round(time.monotonic() - began, 1),
        figures=numbers,
        findings=found,
        again=f"python3 manage.py {again}",
    )


def _patient(stack: Stack) -> None:
    """Short leases, patient queues, and no proof but a person's where it matters."""
    stack.desk.ask("policies", workspace=WORKSPACE, timeouts=TIMEOUTS)
    stack.desk.ask(
        "policies", workspace=WORKSPACE, timeouts={}, tools=list(intents.SIDE_EFFECTS),
        **SIDE_EFFECTS,
    )  # fmt: skip


class Drill:
    """The load, the nemesis and the clerks of one run on one stack."""

    def __init__(self, stack: Stack, seed: int, calls: int, faults: int) -> None:
        self.stack, self.seed = stack, seed
        self.load = Load(stack.agent(WORKSPACE), intents.script(seed, calls))
        self.nemesis = Nemesis(stack, scripts.script(seed, faults, submits=calls))
        self.clerks = Clerks(stack, seed)
        self.sessions = Sessions(stack.agent(WORKSPACE), relays.script(seed, calls))
        self.since = datetime.now(UTC).isoformat()
        self.last_fault = self.quiet_after_s = 0.0
        self.open: dict[str, int] = {}
        self.calls: dict[str, LedgerCall] = {}
        self.seen = SessionsSeen()

    def play(self) -> None:
        """Submit and break until both scripts are at their end, then make everything whole."""
        self.clerks.start()
        agents = [self.load.start(), self.sessions.start(lambda: self.load.begun)]
        told = time.monotonic()
        while any(agent.is_alive() for agent in agents):
            self.nemesis.step(self.load.begun)
            if time.monotonic() - told > TELL_EVERY_S:
                told = time.monotonic()
                say(f"{self.load.begun} submitted, {len(self.nemesis.notes)} faults done")
            time.sleep(STEP_S)
        self.last_fault = time.monotonic()
        self.nemesis.rest()

    def wait_until_quiet(self) -> None:
        """Wait until every call is settled; what is not by then is a finding."""
        ends = time.monotonic() + QUIET_LIMIT_S
        while time.monotonic() < ends:
            self.stack.tend()
            self.open = self.stack.desk.ask("unsettled", workspace=WORKSPACE)
            if not self.open or self.clerks.broke:
                break
            time.sleep(0.5)
        self.quiet_after_s = time.monotonic() - self.last_fault
        self.clerks.stop()

    def judged(self) -> list[Finding]:
        """Compare world and ledger, and ask every invariant."""
        rows = self.stack.desk.ask("calls", workspace=WORKSPACE)
        self.calls = {row["id"]: LedgerCall.of(row) for row in rows}
        found = checker.findings(
            [*(_answered(asked) for asked in self.load.asked), *self.sessions.answered],
            self.calls.values(),
            self.stack.world.seen(),
        )
        broke = [Finding(kind="operator", sentence=each) for each in self.clerks.broke]
        return [*found, *self._of_sessions(), *broke, *verified(self.stack, self.since)]

    def _of_sessions(self) -> list[Finding]:
        """Show each session what it missed, then compare what is told with the ledger."""
        told = self.sessions.tell()
        self.seen = SessionsSeen.read(self.stack.desk.ask("sessions", workspace=WORKSPACE))
        judged = session_checker.findings(self.seen, self.calls, self.sessions.rendered, told)
        return [*self.sessions.found, *judged]

    def figures(self, found: list[Finding]) -> dict[str, Any]:
        """The numbers of the run."""
        kinds = Counter(finding.kind for finding in found)
        notes = self.nemesis.notes
        exposed = figures.exposures(notes, self.calls)
        noticed = figures.noticed_s(notes, self.calls)
        return {
            "seed": self.seed,
            "calls": len(self.calls),
            "faults done": len(notes),
            "faults that met nobody": self.nemesis.missed,
            "programs started again": self.nemesis.restarts,
            "faults by kind": dict(sorted(Counter(note["kind"] for note in notes).items())),
            "exposures": sum(exposed.values()),
            "exposures between boundary and effect": sum(
                exposed[point] for point in scripts.BETWEEN_BOUNDARY_AND_EFFECT
            ),
            "exposures by point": dict(exposed),
            "sessions": len(self.sessions.opened),
            "compactions": len(self.seen.compacted),
            "hand-offs": len(self.seen.handed_over),
            "renders judged": self.sessions.renders,
            "exposures in compactions and hand-offs": figures.met(notes, scripts.OF_SESSIONS),
            **{name: kinds[name] for name in PROMISES},
            "decisions": dict(self.clerks.said),
            "outcomes": dict(Counter(call.state for call in self.calls.values())),
            "kill to noticed, p50 s": figures.percentile(noticed, 0.5),
            "kill to noticed, p99 s": figures.percentile(noticed, 0.99),
            "last fault to quiet, s": round(self.quiet_after_s, 1),
        }


def _answered(asked: Asked) -> Answered:
    return Answered(
        asked.intent.key, frozenset(asked.calls), tuple(asked.refused), asked.reuse_accepted
    )


def _keep(folder: Path, drill: Drill, found: list[Finding]) -> None:
    """Write what was broken, line by line, and the events of each call that a finding names."""
    lines = "".join(json.dumps(note) + "\n" for note in drill.nemesis.notes)
    (folder / "faults.jsonl").write_text(lines)
    for call in {finding.call for finding in found if finding.call}:
        known = drill.calls.get(call.rpartition("_")[2])
        if known is not None:
            text = json.dumps({name: getattr(known, name) for name in known.__slots__}, indent=1)
            (folder / f"{call}.json").write_text(text + "\n")
