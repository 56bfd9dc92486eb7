"""An import as its page shows it: the report, and the difference entry by entry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard import payloads
from dashboard.payloads import Payload
from dashboard.repairs import Report, report_of
from ledger import ids, masks
from ledger.calls import Reader
from ledger.errors import LedgerError
from ledger.imports import copies, keeping
from ledger.imports.copies import Difference
from ledger.models import Import, Turn
from ledger.permissions import Person
from ledger.transcripts.neutral import Call, Entry, Result, Text
from ledger.vocabulary import spoken

ITEMS_MAX = 100
"""How many entries of the difference are drawn, those that were kept not among them."""


BECAME = {"changed": "± changed", "dropped": "− dropped", "added": "+ added"}
REMARKS = {
    "prompt_repeated": "marked as a repeated prompt",
    "differs": "marked as differing from the ledger",
}
"""Kinds of change that only remark on an entry: its words stay."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry: what became of it, by which changes, its text before and after."""

    kind: str
    role: str
    came_from: int | None
    went_to: int | None
    changes: Sequence[str]
    before: Payload | None = None
    after: Payload | None = None

    @property
    def became(self) -> str:
        """What became of the entry; one that is only remarked on stays as it was."""
        is_remarked = bool(self.changes) and set(self.changes) <= set(REMARKS)
        return "= kept" if is_remarked else BECAME[self.kind]

    @property
    def told(self) -> str:
        """What the first text is: what it was before, or what it still is."""
        return "before" if self.after or self.went_to is None else "unchanged"

    @property
    def by(self) -> list[str]:
        """By which changes, in words."""
        return [REMARKS.get(each, spoken(each)) for each in self.changes]


@dataclass(frozen=True, slots=True)
class ImportPage:
    """One import: its row, its report, the difference, and whether somebody built on it."""

    row: Import
    report: Report
    made: Mapping[str, Any]
    counts: Mapping[str, int]
    items: Sequence[Item]
    left_out: int
    since: Turn | None
    why_no_difference: str = ""

    @property
    def why_not(self) -> str:
        """Why it can be neither reverted nor discarded any more; empty while it can."""
        if self.row.discarded_at is not None:
            return "This import was discarded."
        if self.since is not None:
            return f"Turn {self.since.number} followed the import: somebody has built on it."
        return ""


def get(person: Person, import_id: str) -> Import:
    """An import of the person's workspace. Raises NotFound."""
    reader = Reader(person.workspace_id)
    return keeping.get(reader=reader, import_id=ids.read("import", import_id))


def of(row: Import) -> ImportPage:
    """The whole page; the copy is made anew from the bytes that were kept."""
    shown: dict[str, Any] = {"counts": {}, "items": [], "left_out": 0}
    try:
        shown |= _difference(row)
    except LedgerError as refusal:
        shown["why_no_difference"] = str(refusal)
    return ImportPage(
        row=row,
        report=report_of(row.report["report"]),
        made=row.report["made"],
        since=keeping.turn_since(row),
        **shown,
    )


def _difference(row: Import) -> dict[str, Any]:
    found, known = copies.difference(row), masks.texts_of(row.session)
    changed = [each for each in found.items if each["is"] != "kept"]
    drawn = changed[:ITEMS_MAX]
    return {
        "counts": found.counts,
        "items": [_item(each, found, known) for each in drawn],
        "left_out": len(changed) - len(drawn),
    }


def _item(item: Mapping[str, Any], found: Difference, known: Mapping[str, str]) -> Item:
    came, went = item["from"], item["to"]
    was = (
        _told(found.before[came], known) if came is not None and came < len(found.before) else None
    )
    is_ = _told(found.after[went], known) if went is not None and went < len(found.after) else None
    return Item(
        kind=item["is"],
        role=item["role"],
        came_from=came,
        went_to=went,
        changes=item["changes"],
        before=was,
        after=None if was == is_ else is_,
    )


def _told(entry: Entry, known: Mapping[str, str]) -> Payload:
    """An entry in words: its texts, calls and results."""
    words = "\n".join(filter(None, map(_part, entry.parts))) or "no text"
    return payloads.of_text(words, title="Entry", source="from the transcript, not checked",
                            known=known)  # fmt: skip


def _part(part: Any) -> str:
    match part:
        case Text(text):
            return text
        case Call():
            arguments = dict(part.arguments) if part.arguments is not None else part.unparsed
            return f"calls {part.name} ({part.id}) with {arguments}"
        case Result():
            return f"result for {part.answers}: {part.text}"
        case _:
            return f"({spoken(part.kind)}, kept as it came)"
