"""The numbers of a chaos drill, from its notes and from what the ledger has at the end."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drills.chaos.faults import EXPOSED
from drills.checker import LedgerCall

NOTICED = ("fence_lost", "attempt_failed", "interrupted", "started", "expired", "failed")
SIDE_EFFECT = "side_effect"
BROKEN_OUTSIDE = ("drop_after", "drop_before", "error_after")


def exposures(notes: Iterable[Mapping[str, Any]], calls: Mapping[str, LedgerCall]) -> Counter[str]:
    """Side effects that were hit between boundary and record, by point; and at random moments.

    An attempt counts once. A payment that the outside broke by itself is counted apart.
    """
    found: Counter[str] = Counter()
    named: Counter[str] = Counter()
    for note in notes:
        call = calls.get(note.get("call", ""))
        if note.get("at") in EXPOSED and call and call.recovery_class == SIDE_EFFECT:
            found[note["at"]] += 1
            named[call.id] += 1
    for call in calls.values():
        if call.recovery_class == SIDE_EFFECT:
            others = _broken_crossings(call) - named[call.id]
            where = "broken outside" if _broken_outside(call) else "random moment"
            found[where] += max(0, others)
    return +found


def met(notes: Iterable[Mapping[str, Any]], points: Iterable[str]) -> dict[str, int]:
    """How often somebody was hit at each of these points."""
    found = Counter(note.get("at") for note in notes)
    return {point: found[point] for point in points if found[point]}


def _broken_crossings(call: LedgerCall) -> int:
    return sum(each["crossed"] and each["outcome"] != "succeeded" for each in call.attempts)


def _broken_outside(call: LedgerCall) -> bool:
    return call.arguments.get("fault") in BROKEN_OUTSIDE


def noticed_s(notes: Iterable[Mapping[str, Any]], calls: Mapping[str, LedgerCall]) -> list[float]:
    """Seconds from a kill at a point to the ledger's first word of it, in order of size."""
    found = []
    for note in notes:
        call = calls.get(note.get("call", ""))
        if call is None or note.get("deed") != "kill":
            continue
        after = [at for kind, at, _ in call.events if at > note["instant"] and kind in NOTICED]
        if after:
            found.append(min(after) - note["instant"])
    return sorted(found)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share lies; 0 for an empty row."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
