"""What the pages of bulk runs show: the deed, each row's eligibility with its reason, its outcome.

A run is frozen before anything is decided, so the page shows exactly the rows that will run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from dashboard.deciding import TITLES
from ledger import clock, ids, masks
from ledger.permissions import Person
from ledger.vocabulary import ResolutionStage, spoken
from recovery import bulk, stages
from recovery.models import BulkRow, BulkRun, Resolution

ELIGIBILITY = {
    "will_run": "will run",
    "already_settled": "already settled",
    "already_decided": "already decided",
    "needs_evidence": "needs evidence of its own",
    "no_match": "not in the match file",
    "matched_twice": "an id occurs twice",
    "needs_second_person": "needs a second person",
    "locked": "denial is still locked",
    "not_allowed": "not allowed",
}
"""The lists that the rows of a run fall into, in the order in which they are shown."""
STARTED = "in this run"
"""What the rows are called that will run, once the run has begun or can begin no more."""
FROZEN, RUNNING, TOO_OLD = "frozen, not started", "running", "too old to start"
OUTCOMES = {
    bulk.DONE: "done",
    bulk.CHANGED: "changed meanwhile",
    bulk.FAILED: "failed",
    bulk.SKIPPED: "skipped",
    "": "waits",
}
NEVER_BEGUN = {"": "never begun"}
"""What waits is called so in a run that can begin no more."""
UNDECIDED = ("", bulk.SKIPPED)
PACE = f"At most {bulk.ROWS_PER_TOOL} rows of one tool are decided in {bulk.PACE_S:g} s."
COLUMNS = ("incident", "call", "tool", "agent", "eligibility", "outcome", "decision", "why",
           "decided_at")  # fmt: skip
"""Those of the exported results."""
IN_BULK = ("happened", "did_not_happen:repeat", "did_not_happen:close", "retry_same_key",
           "probe_again", "abandon")  # fmt: skip


def deeds() -> list[tuple[str, str]]:
    """The answers that a run may give, with their words."""
    return [(each, TITLES[_pair(each)][0]) for each in IN_BULK]


def _pair(answer: str) -> tuple[str, str]:
    word, _, then = answer.partition(":")
    return word, then


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a run."""

    row: BulkRow
    tool: str
    agent: str
    outcome: str
    stage: str = ""

    @property
    def incident(self) -> str:
        return ids.shown("incident", self.row.incident_id)

    @property
    def is_running(self) -> bool:
        return self.row.eligibility == "will_run"


@dataclass(frozen=True, slots=True)
class Listed:
    """The rows of one eligibility."""

    word: str
    title: str
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Told:
    """A text that models will read, for how many rows, the first and the largest of them."""

    text: str
    rows: int
    first: Line
    largest: Line


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its rows."""

    row: BulkRun
    now: datetime
    lines: list[Line]
    confirm: str

    @property
    def shown(self) -> str:
        return ids.shown("bulk_run", self.row.id)

    @property
    def deed(self) -> str:
        return TITLES[str(self.row.answer), self.row.then][0]

    @property
    def lists(self) -> list[Listed]:
        """Every list that has rows, each row in one."""
        titles = ELIGIBILITY if self.is_frozen else ELIGIBILITY | {"will_run": STARTED}
        return [
            Listed(word, title, [each for each in self.lines if each.row.eligibility == word])
            for word, title in titles.items()
            if any(each.row.eligibility == word for each in self.lines)
        ]

    @property
    def eligible(self) -> int:
        return sum(each.is_running for each in self.lines)

    @property
    def decided(self) -> int:
        return sum(each.row.outcome not in UNDECIDED for each in self.lines)

    @property
    def failed(self) -> int:
        """How many rows can be tried again."""
        return sum(each.row.outcome == bulk.FAILED for each in self.lines)

    @property
    def counted(self) -> list[tuple[str, int]]:
        """How many rows came to which outcome."""
        words = [each.outcome for each in self.lines if each.is_running]
        return [(word, words.count(word)) for word in OUTCOMES.values() if word in words]

    @property
    def undoable(self) -> int:
        """How many rows can still be taken back."""
        waits = (str(ResolutionStage.PENDING), str(ResolutionStage.REQUESTED))
        return sum(each.stage in waits for each in self.lines)

    @property
    def state(self) -> str:
        """Where the run stands, in words."""
        return _state(self.row, self.now)

    @property
    def is_frozen(self) -> bool:
        return self.state == FROZEN

    @property
    def may_start(self) -> bool:
        return self.is_frozen and self.eligible > 0

    @property
    def moves(self) -> bool:
        return self.state in (RUNNING, FROZEN) or self.undoable > 0

    @property
    def pace(self) -> str:
        return PACE

    @property
    def numbers(self) -> tuple[Any, ...]:
        return (self.state, self.decided, self.undoable)


def _state(row: BulkRun, now: datetime) -> str:
    if row.stopped_at:
        return "stopped"
    if row.finished_at:
        return "finished"
    if row.started_at:
        return RUNNING
    return TOO_OLD if row.expires_at <= now else FROZEN


def of(row: BulkRun) -> Run:
    """Read a run with its rows, and how far each of its decisions has come."""
    now = clock.now()
    rows = row.rows.select_related("call__agent").order_by("place")
    made = Resolution.objects.filter(bulk_row__run=row).prefetch_related("events")
    stage = {each.bulk_row_id: str(stages.of(each)) for each in made}
    words = OUTCOMES | (NEVER_BEGUN if _state(row, now) == TOO_OLD else {})
    lines = [
        Line(each, each.call.tool, each.call.agent.name, words[each.outcome],
             stage.get(each.id, ""))
        for each in rows
    ]  # fmt: skip
    return Run(row, now, lines, bulk.confirm_of(row))


def results(run: Run) -> list[tuple[str, ...]]:
    """Every row as cells of `COLUMNS`, in the order of the run; instants in UTC."""
    return [
        (
            line.incident,
            ids.shown("call", line.row.call_id),
            line.tool,
            line.agent,
            ELIGIBILITY[line.row.eligibility],
            line.outcome if line.is_running else "",
            spoken(line.stage),
            line.row.detail,
            f"{line.row.done_at:%Y-%m-%dT%H:%M:%S.%fZ}" if line.row.done_at else "",
        )
        for line in run.lines
    ]


@dataclass(frozen=True, slots=True)
class Summary:
    """One run in the list of runs."""

    run: Run
    rows: int
    eligible: int
    decided: int


def summaries(found: Sequence[BulkRun]) -> list[Summary]:
    """The runs of a list, their rows counted once for all."""
    rows = BulkRow.objects.filter(run__in=found).order_by().values("run")
    counted = rows.annotate(
        rows=Count("id"),
        eligible=Count("id", filter=Q(eligibility="will_run")),
        decided=Count("id", filter=~Q(outcome__in=UNDECIDED)),
    )
    counts = {each["run"]: (each["rows"], each["eligible"], each["decided"]) for each in counted}
    now = clock.now()
    return [Summary(Run(each, now, [], ""), *counts.get(each.id, (0, 0, 0))) for each in found]


def previewed(run: Run) -> list[Told]:
    """What the models will read, each text once: the typical first, then every other.

    Each with the row it is shown of: the typical one's own, and the row with the largest
    arguments where that is another. By the rulings at freezing, which carrying out follows unless
    a file moves.
    """
    rows = [each for each in run.lines if each.is_running]
    texts: dict[str, list[Line]] = {}
    for each in rows:
        texts.setdefault(each.row.told, []).append(each)
    hidden = masks.of_calls([lines[0].row.call for lines in texts.values()])
    return [
        Told(
            hidden[lines[0].row.call_id].text(text),
            len(lines),
            lines[0],
            max(lines, key=lambda each: each.row.size_bytes),
        )  # fmt: skip
        for text, lines in sorted(texts.items(), key=lambda each: -len(each[1]))
    ]


def rows_of(person: Person) -> Any:
    """The runs of a person's workspace."""
    return BulkRun.objects.filter(workspace=person.workspace_id)
