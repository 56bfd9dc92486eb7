"""Ids for calls that came without one, where a format matches answers by name and place.

An id made here says where the call stood, `unnamed_{content}_{part}`, so that equal input gives
equal ids; it is recognised by that form and never written. An answer without id takes a call of
its name: of the content directly before it, in order; or further back, if exactly one is still
open. Otherwise it stays without, and is an orphan: a place alone is no proof (transcripts, T14).
"""

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ledger.transcripts.neutral import Call, Entry, Part, Result

FORM = re.compile(r"unnamed_\d+_\d+")


def named(entries: Sequence[Entry]) -> list[Entry]:
    """The entries with an id on each call, and on each answer that has one call to answer."""
    return list(map(_Open().entry, entries))


def written(id: str | None) -> dict[str, str]:
    """The member for an id as it was given; none for one that was made here."""
    return {} if id is None or FORM.fullmatch(id) else {"id": id}


@dataclass(slots=True)
class _Open:
    """The unnamed calls not answered yet, by tool: those just asked, and those further back."""

    asked: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    earlier: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def entry(self, entry: Entry) -> Entry:
        if not entry.results:
            self._put_back()
        parts = tuple(self._part(part, f"{entry.at}_{n}") for n, part in enumerate(entry.parts))
        return entry if parts == entry.parts else replace(entry, parts=parts)

    def _part(self, part: Part, place: str) -> Part:
        match part:
            case Call(id=None, name=name) if name:
                call = replace(part, id=f"unnamed_{place}")
                self.asked[name].append(f"unnamed_{place}")
                return call
            case Result(answers=None, name=name):
                return replace(part, answers=self._taken(name))
        return part

    def _taken(self, name: str) -> str | None:
        if self.asked[name]:
            return self.asked[name].popleft()
        if len(self.earlier[name]) == 1:
            return self.earlier[name].pop()
        return None

    def _put_back(self) -> None:
        for name, ids in self.asked.items():
            self.earlier[name].extend(ids)
        self.asked.clear()
