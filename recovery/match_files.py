"""Match files: a provider's export as evidence, row by row (console, section 10, step 4).

A CSV with one chosen column of ids. A call is matched by an id that only it has among those meant,
and that only one row has: its idempotency key, the key of its effect, its marker, the id its
provider gave to the tool call, its own id, a handle of it. What is ambiguous on either side
matches nothing and is named. Cells are text, always: nothing is computed, fetched or guessed.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from ledger import ids, secrets
from ledger.errors import Invalid
from ledger.models import Handle, ToolCall

BYTES_MAX = 2_000_000
ROWS_MAX = 50_000
COLUMNS_MAX = 200
CELL_MAX = 2_000
DELIMITERS = ",;\t|"

NO_MATCH, TWICE = "no_match", "matched_twice"


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the file: its number, counted from the heading as 1, and its cells by column."""

    number: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MatchFile:
    """An export that was read: its name, the column of ids, and its rows by their id."""

    name: str
    column: str
    lines: Mapping[str, Sequence[Line]]


@dataclass(frozen=True, slots=True)
class Match:
    """What the file says of one call: its row, or why there is none."""

    line: Line | None = None
    eligibility: str = ""
    why: str = ""


def read(name: str, body: bytes, column: str) -> MatchFile:
    """Read an export. Raises Invalid, with the columns that there are where the one is not."""
    if len(body) > BYTES_MAX:
        raise Invalid(detail=f"The match file is larger than {BYTES_MAX // 1_000_000} MB: cut it.")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(detail="The match file is no UTF-8 text. Export it as CSV, UTF-8.") from error
    if "\x00" in text:
        raise Invalid(detail="The match file holds zero bytes: it is no text. Export it as CSV.")
    heading, rows = _rows(text)
    column = column.strip() or (heading[0] if len(heading) == 1 else "")
    if heading.count(column) != 1:
        raise Invalid(
            detail=f"The match file has {'no' if column not in heading else 'more than one'} "
            f"column {column[:60]!r}. It has: {', '.join(each[:60] for each in heading[:20])}."
        )
    at = heading.index(column)
    lines: dict[str, list[Line]] = {}
    for number, row in enumerate(rows, start=2):
        cells = [each[:CELL_MAX] for each in row[: len(heading)]]
        if at < len(cells) and cells[at].strip():
            told = dict(zip(heading, cells, strict=False))
            lines.setdefault(cells[at].strip(), []).append(Line(number, told))
    return MatchFile(name[:120], column, lines)


def _rows(text: str) -> tuple[list[str], list[list[str]]]:
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    try:
        rows = [each for each in csv.reader(io.StringIO(text), delimiter=delimiter) if any(each)]
    except csv.Error as error:
        raise Invalid(detail=f"The match file cannot be read as CSV: {error}.") from error
    if len(rows) < 2:
        raise Invalid(detail="The match file has no rows below its heading.")
    if len(rows) > ROWS_MAX + 1 or len(rows[0]) > COLUMNS_MAX:
        raise Invalid(
            detail=f"A match file has at most {ROWS_MAX} rows and {COLUMNS_MAX} columns: cut it."
        )
    return [each.strip()[:200] for each in rows[0]], rows[1:]


def match(file: MatchFile, calls: Sequence[ToolCall]) -> dict[UUID, Match]:
    """What the file says of each call, by the call's id."""
    names = {call.id: _names(call) for call in calls}
    for call_id, found in _handles(file, calls).items():
        names[call_id] |= found
    shared = Counter(name for each in names.values() for name in each)
    return {call.id: _of(file, names[call.id], shared) for call in calls}


def _of(file: MatchFile, names: set[str], shared: Mapping[str, int]) -> Match:
    known = sorted(name for name in names if name in file.lines)
    for name in known:
        if shared[name] > 1:
            return Match(None, TWICE, f"The id {name[:80]!r} belongs to {shared[name]} of these.")
    lines = {line.number: line for name in known for line in file.lines[name]}
    if len(lines) > 1:
        rows = ", ".join(map(str, sorted(lines)[:5]))
        return Match(None, TWICE, f"More than one row of the file names it: {rows}.")
    if not lines:
        return Match(None, NO_MATCH, f"No row of the file names it in {file.column[:60]!r}.")
    return Match(next(iter(lines.values())))


def _names(call: ToolCall) -> set[str]:
    own = {call.idempotency_key, call.effect_key, call.tool_call_id, call.marker, call.id.hex,
           str(call.id), ids.shown("call", call.id)}  # fmt: skip
    return {str(each) for each in own if each}


def _handles(file: MatchFile, calls: Sequence[ToolCall]) -> dict[UUID, set[str]]:
    """Handles are kept encrypted, so those of the file are looked for by their keyed hash."""
    rows = Handle.objects.filter(call__in=[each.id for each in calls])
    kept: dict[bytes, set[UUID]] = {}
    for value_hmac, call_id in rows.values_list("value_hmac", "call"):
        kept.setdefault(bytes(value_hmac), set()).add(call_id)
    found: dict[UUID, set[str]] = {}
    for name in file.lines if kept else ():
        for call_id in kept.get(bytes(secrets.keyed_hash(name)), ()):
            found.setdefault(call_id, set()).add(name)
    return found


def document(file: MatchFile, line: Line) -> tuple[str, str]:
    """A row as evidence: what was looked at, and the row itself as JSON."""
    said = f"Row {line.number} of the provider's export {file.name!r}, matched by {file.column!r}."
    return said, json.dumps(line.cells, ensure_ascii=False)
