"""Comparing an agent's own transcript with what a compaction carried over (R107).

An agent that keeps its own history can still lose a line. It posts what it holds; every unresolved
call that is named nowhere in it is missing. The finding is kept, recovery makes an incident of it,
and the agent gets the missing lines again at once and until a later comparison finds them.
"""

import hashlib
from collections.abc import Collection, Iterator
from typing import Any
from uuid import UUID

from ledger import carry_over, ids, strictjson, unresolved
from ledger.carry_over import Line
from ledger.models import Compaction, CompactionCheck, Session, ToolCall
from ledger.transactions import repeatable


@repeatable
def compare(
    *, session: Session, compaction: Compaction, transcript: Any
) -> tuple[CompactionCheck, list[Line]]:
    """Compare a transcript of any shape with the calls that a compaction carried over.

    Return the finding, and the lines that the agent must put into its context again. Calls that
    were settled since are not asked for: their results are delivered.
    """
    Session.objects.select_for_update(no_key=True).get(id=session.id)
    missing = _missing(session, compaction, transcript)
    check = CompactionCheck.objects.create(
        compaction=compaction,
        workspace_id=session.workspace_id,
        transcript_sha256=hashlib.sha256(strictjson.canonical(transcript)).hexdigest(),
        missing=[call.id for call in missing],
    )
    return check, carry_over.lines(missing)


def _missing(session: Session, compaction: Compaction, transcript: Any) -> list[ToolCall]:
    carried = set(compaction.unresolved)
    still = [call for call in unresolved.of_session(session.id) if call.id in carried]
    held = "\n".join(_texts(transcript))
    names = frozenset(held.split("\n"))
    return [call for call in still if not _is_named(call, held, names)]


def _is_named(call: ToolCall, held: str, names: Collection[str]) -> bool:
    """Our id may stand within a text; the model's is short, and counts only as a whole value."""
    return ids.shown("call", call.id) in held or (
        bool(call.tool_call_id) and call.tool_call_id in names
    )


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, without recursion."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            left += each.values()
        elif isinstance(each, list):
            left += each


def to_show_again(session_id: UUID) -> list[Line]:
    """The lines that the last comparison of the latest compaction missed, made anew."""
    last = (
        CompactionCheck.objects.filter(compaction__session=session_id)
        .order_by("-compaction__number", "-id")
        .first()
    )
    if last is None or not last.missing:
        return []
    found: set[UUID] = set(last.missing)
    return carry_over.lines([c for c in unresolved.of_session(session_id) if c.id in found])
