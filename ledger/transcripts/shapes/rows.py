"""Rows of an agent's own table of messages: read, never sent.

Members as such tables have them: `pos`, `role`, `tool_call_id`, `tool_name`, `content`; a dash
stands for nothing. A row of the assistant that bears a call id is one call, its content the
arguments; such rows in a run, and the text right before them, are one reply. A row may instead
bear `tool_calls` as chat messages do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ledger.transcripts import arguments
from ledger.transcripts.neutral import (
    FAILED,
    Call,
    Entry,
    Part,
    Result,
    Role,
    Text,
)
from ledger.transcripts.shapes.places import Place, listed

LISTS = ("rows", "messages")
NOTHING = (None, "", "-")
POSITION = ("pos", "position")


@dataclass(frozen=True, slots=True)
class Rows:
    """Reads a list of rows, or an object with `rows`; has no way of writing them."""

    name: str = "rows"
    form: str = "rows"
    itemised: bool = False
    names_results: bool = True

    def read(self, transcript: Any) -> list[Entry]:
        """One entry for each row, but one for all the rows of a reply; in the order of `pos`."""
        rows = sorted(listed(transcript, *LISTS), key=_position)
        return _replies([_entry(at, row) for at, row in enumerate(rows)])

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """Never: no provider takes rows. Raises TypeError."""
        raise TypeError("Rows are read, never sent. Choose a provider's format to write.")


def _position(row: Place) -> float:
    """Where the row stands; rows without a position keep the order in which they came."""
    given = next((row.member(name).value for name in POSITION if row.member(name).value), 0)
    try:
        return float(given)
    except (TypeError, ValueError):
        raise row.refused("The position of a row is a number.") from None


def _entry(at: int, row: Place) -> Entry:
    role = Role(row.member("role").word([role.value for role in Role]))
    stopped = row.member("stop_reason").maybe_text() or ""
    return Entry(
        role,
        tuple(_parts(row, role)),
        at=at,
        stop_reason=stopped,
        failed=stopped in FAILED,
    )


def _parts(row: Place, role: Role) -> Iterator[Part]:
    words = _words(row.member("content"))
    if role is Role.TOOL:
        yield _result(row, words)
    elif role is Role.ASSISTANT and _given(row, "tool_call_id"):
        yield _call(row, words)
    else:
        if words:
            yield Text(words)
        if row.member("tool_calls").value is not None:
            yield from (_chat_call(call) for call in row.member("tool_calls").items())


def _call(row: Place, words: str) -> Call:
    asked, unparsed = arguments.received(words)
    return Call(_given(row, "tool_call_id"), _given(row, "tool_name") or "", asked, unparsed)


def _chat_call(call: Place) -> Call:
    function = call.member("function")
    given = function.member("arguments").value
    asked, unparsed = (None, None) if given is None else arguments.received(given)
    name = function.member("name").maybe_text() or ""
    return Call(call.member("id").maybe_text(), name, asked, unparsed)


def _result(row: Place, words: str) -> Result:
    return Result(
        answers=_given(row, "tool_call_id"),
        parts=(Text(words),) if words else (),
        name=_given(row, "tool_name") or "",
        is_error=row.member("is_error").value is True,
    )


def _given(row: Place, name: str) -> str | None:
    value = row.member(name)
    return None if value.value in NOTHING else value.text()


def _words(content: Place) -> str:
    if content.value in NOTHING:
        return ""
    return content.value if isinstance(content.value, str) else arguments.written(content.value)


def _replies(entries: Sequence[Entry]) -> list[Entry]:
    """The rows of one reply as one entry: a text, and the calls that follow it without a break."""
    replies: list[Entry] = []
    for entry in entries:
        before = replies[-1] if replies else None
        if before and before.role is entry.role is Role.ASSISTANT and _is_calls(entry):
            replies[-1] = replace(
                before,
                parts=before.parts + entry.parts,
                stop_reason=entry.stop_reason or before.stop_reason,
                failed=before.failed or entry.failed,
            )
        else:
            replies.append(entry)
    return replies


def _is_calls(entry: Entry) -> bool:
    return len(entry.calls) == len(entry.parts) > 0
