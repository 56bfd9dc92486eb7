"""What a drill found, for people and for programs; kept as `report.json` and `report.txt`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from drills.rows.row import Row

STATES = {True: "passed", False: "FAILED", None: "not yet"}
SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: its kind, the call if it is about one, and the sentence."""

    kind: str
    sentence: str
    call: str = ""


@dataclass(slots=True, kw_only=True)
class Report:
    """One drill. `figures` are its numbers by name, `rows` its tests, `findings` what is wrong."""

    kind: str
    seconds: float
    figures: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    findings: Sequence[Finding] = ()
    again: str = "python3 manage.py drill"

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong; a test that is not there yet is neither passed nor failed."""
        return not self.findings and not any(row.passed is False for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "kind": self.kind,
            "passed": self.passed,
            "seconds": self.seconds,
            "again": self.again,
            "figures": dict(self.figures),
            "rows": [row.to_json() for row in self.rows],
            "findings": [asdict(finding) for finding in self.findings],
        }

    def as_json(self) -> str:
        """The report as one document."""
        return json.dumps(self.to_json(), indent=1)

    def as_text(self, folder: Path) -> str:
        """The report as a person reads it, with what to do next."""
        return "\n".join(
            [
                *(line for row in self.rows for line in _of_row(row)),
                *_of_figures(self.figures),
                *_of_findings(self.findings),
                "",
                self._closing(folder),
            ]
        )

    def keep(self, folder: Path) -> None:
        """Write both forms into the report's folder."""
        (folder / "report.json").write_text(self.as_json() + "\n")
        (folder / "report.txt").write_text(self.as_text(folder) + "\n")

    def _closing(self, folder: Path) -> str:
        took = f"{self.seconds:.0f} s"
        if self.passed:
            return f"All as expected, in {took}. The report is kept in {folder}."
        wrong = len(self.findings) + sum(row.passed is False for row in self.rows)
        return (
            f"{wrong} thing(s) went wrong, in {took}. Begin with the first one above: its call's "
            f"events stand in {folder}, beside the logs of the programs. Run it again with "
            f"`{self.again}`."
        )


def _of_row(row: Row) -> list[str]:
    lines = [f"{row.number:<3} {STATES[row.passed]:<8} {row.seconds:5.1f} s  {row.name}"]
    if row.passed is None:
        return [*lines, f"    seen      {row.seen}"]
    answers = " · ".join(f"{name.replace('_', ' ')}: {word}" for name, word in row.answers.items())
    return [
        *lines,
        f"    killed    {row.killed}: {row.where}",
        f"    expected  {row.expected}",
        f"    seen      {row.seen}",
        f"    verdict   {answers or 'none'}  {row.verdict}",
    ]


def _of_figures(figures: Mapping[str, Any]) -> list[str]:
    return [f"{name:<28} {_figure(value)}" for name, value in figures.items()]


def _figure(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_figure(each)}" for name, each in value.items()) or "none"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _of_findings(findings: Sequence[Finding]) -> list[str]:
    lines = [
        f"{finding.kind}: {finding.call + ': ' if finding.call else ''}{finding.sentence}"
        for finding in findings[:SHOWN]
    ]
    more = len(findings) - SHOWN
    return [*lines, f"and {more} more, in report.json"] if more > 0 else lines
