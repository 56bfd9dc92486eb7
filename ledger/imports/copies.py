"""The copies of an imported conversation: the original, the repaired one for each provider, and
what differs between them.

Nothing is stored but the original: a repair is the same each time it is made (T2), and no clock
or later row goes into it.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ledger import ids
from ledger.imports import keeping, plans, receiving
from ledger.imports.receiving import Received
from ledger.models import Import
from ledger.transcripts import refusals
from ledger.transcripts.neutral import Entry
from ledger.transcripts.options import Options
from ledger.transcripts.profiles import Profile, UnknownProfile, profile, profiles, shape
from ledger.transcripts.repair import Repaired, Unrepairable, repair

NOBODY_READ = Options(late_results="in_place")
"""No model has read a notice of ours in an import, so a late result takes its place."""
FALLBACK = "openai-compatible"
"""The provider's rules for a format that is only read: the strictest of each column."""


def received_of(row: Import) -> Received:
    """The transcript of an import, read again from the bytes that were kept."""
    lines = bool(row.report.get("lines"))
    return receiving.again(keeping.original(row), format=row.format, lines=lines)


def own_profile(format: str) -> str:
    """The provider whose rules a format is repaired by where none is named."""
    return format if format in profiles() else FALLBACK


def repaired(received: Received, name: str) -> Repaired:
    """The repaired copy for a provider. Raises Invalid for an unknown one, TranscriptUnreadable
    and TranscriptUnrepairable.
    """
    try:
        with plans.readable(received):
            return mend(received, profile(name))
    except UnknownProfile as error:
        raise refusals.unknown(error, "profile") from None
    except Unrepairable as error:
        raise refusals.unrepairable(error, name) from None


def mend(received: Received, wanted: Profile) -> Repaired:
    """Repair for one provider, as every copy of an import is. Raises as `repair`."""
    return repair(received.transcript, format=received.format, profile=wanted, options=NOBODY_READ)


def shown(row: Import, name: str) -> dict[str, Any]:
    """The repaired copy with its report; while the repair is reverted, the original.

    Raises ImportReverted where another provider's copy is asked for then.
    """
    received = received_of(row)
    wanted = name or own_profile(row.format)
    head = {"import": ids.shown("import", row.id), "profile": wanted}
    if row.reverted_at is not None:
        if name and name != row.format:
            raise keeping.ImportReverted(format=row.format)
        return head | {"repaired": False, "transcript": received.transcript, "report": None}
    copy = repaired(received, wanted)
    return head | {"repaired": True, "transcript": copy.body, "report": copy.report.to_json()}


@dataclass(frozen=True, slots=True)
class Difference:
    """The original beside its repaired copy, and what became of each entry."""

    profile: str
    before: list[Entry]
    after: list[Entry]
    items: list[dict[str, Any]]

    @property
    def counts(self) -> dict[str, int]:
        return {kind: sum(each["is"] == kind for each in self.items) for kind in KINDS}


def difference(row: Import) -> Difference:
    """Entry by entry, in the order of the repaired copy: what became of each, and by which change.

    `from` is the place in the original, `to` the one in the copy; None where there is none.
    """
    received = received_of(row)
    name = own_profile(row.format)
    copy = repaired(received, name)
    before = shape(row.format).read(received.transcript)
    report = copy.report.to_json()
    items = _items(before, copy.entries, _changes(report["changes"]))
    return Difference(name, before, copy.entries, items)


KINDS = ("kept", "changed", "dropped", "added")
Changes = dict[tuple[str, int], list[str]]


def _changes(changes: list[dict[str, Any]]) -> Changes:
    """The kinds of change by the place they name, in the original and in the copy."""
    found: Changes = defaultdict(list)
    for change in changes:
        for side in ("from", "to"):
            if change.get(side) is not None:
                found[side, change[side]].append(change["kind"])
    return found


def _items(before: list[Entry], after: list[Entry], changes: Changes) -> list[dict[str, Any]]:
    placed = {entry.at for entry in after}
    items = [_item(before, entry, to, changes) for to, entry in enumerate(after)]
    gone = [
        {"is": "dropped", "from": entry.at, "to": None, "role": str(entry.role),
         "changes": changes.get(("from", entry.at), [])}
        for entry in before if entry.at not in placed
    ]  # fmt: skip
    return items + gone


def _item(before: list[Entry], entry: Entry, to: int, changes: Changes) -> dict[str, Any]:
    came = 0 <= entry.at < len(before)
    by = [*changes.get(("from", entry.at), ())] if came else []
    by += [kind for kind in changes.get(("to", to), ()) if kind not in by]
    same = came and entry.raw is not None and entry.raw == before[entry.at].raw
    kind = "added" if not came else "kept" if same and not by else "changed"
    place = entry.at if came else None
    return {"is": kind, "from": place, "to": to, "role": str(entry.role), "changes": by}
