"""Taking a conversation in: rows and incidents in one transaction (transcripts, part d).

Reading, repairing and planning come before it and hold nothing. Unanswered calls become
`interrupted`, each with its incident, and take the ordinary ladder from the next sweep on; three
orphans or more are reported as damage to the transcript. Locks: none but unique keys, since every
row is new; discarding takes the session, then its calls in the order of their ids.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from ledger import calls, journal, waiting
from ledger.calls import Reader
from ledger.imports import keeping, mending, tools, writing
from ledger.imports.mending import Mended
from ledger.imports.receiving import Received
from ledger.imports.writing import Owner
from ledger.journal import Move
from ledger.models import Import, Session, SessionChange, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import Actor, Effect, IncidentKind
from recovery import incidents

BURST = 3
"""So many orphans in one transcript are damage that a person should know of (semantics, 19.2)."""
GROUNDS = "The imported transcript holds no result of this call."
DISCARDED = "The import that made this session was discarded."


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """Who imports or discards: the agent itself, or a person for it."""

    actor: Actor
    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An import as it is asked for. `binding` is that of the session it becomes."""

    workspace_id: UUID
    agent_id: UUID
    key: str
    received: Received
    by: By
    binding: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> keeping.Name:
        return keeping.Name(
            agent_id=self.agent_id,
            key=self.key,
            sha256=self.received.sha256,
            format=self.received.format,
        )


def take(wanted: Wanted) -> tuple[Import, bool]:
    """Make a session of a transcript; the same file gives the same one. True if it is new.

    Raises KeyReused, TranscriptUnreadable and TranscriptUnrepairable.
    """
    known = keeping.known(wanted.name)
    if known is not None:
        return known, False
    mended = mending.mended(wanted.received)
    try:
        with transaction.atomic():
            return _take(wanted, mended), True
    except IntegrityError:
        # An equal import was committed between our look and our insert.
        known = keeping.known(wanted.name)
        if known is None:
            raise
        return known, False


def _take(wanted: Wanted, mended: Mended) -> Import:
    session = Session.objects.create(
        workspace_id=wanted.workspace_id, agent_id=wanted.agent_id, **wanted.binding
    )
    plan = mended.plan
    kept = tools.keepings(wanted.workspace_id, plan.tool_names)
    # First, because an equal import waits here before it has written anything else.
    row = Import.objects.create(
        workspace_id=wanted.workspace_id,
        agent_id=wanted.agent_id,
        session=session,
        key=wanted.key,
        format=wanted.received.format,
        body=wanted.received.body,
        sha256=wanted.received.sha256,
        report={
            "report": mended.report,
            "made": plan.counts(kept.by_name),
            "lines": wanted.received.lines,
        },
    )
    owner = Owner(session, wanted.by.actor, wanted.by.id, row.sha256)
    interrupted = writing.write_plan(plan, owner, kept)
    _open_incidents(row, mended, interrupted)
    return row


def _open_incidents(row: Import, mended: Mended, interrupted: list[UUID]) -> None:
    found = writing.calls_of(interrupted)
    facts = {"import": row.id.hex, "file_sha256": row.sha256}
    incidents.open_imported(found, grounds=GROUNDS, facts=facts)
    orphans = mended.report["before"]["orphans"]
    if orphans >= BURST:
        incidents.report_of_session(
            row.session,
            IncidentKind.TRANSCRIPT,
            subject="orphans",
            grounds=f"The imported transcript holds {orphans} results whose calls are lost. They "
            "stand in the import's report; nothing was made of them.",
            facts=facts | {"orphans": orphans},
        )


@transaction.atomic
def discard(*, reader: Reader, import_id: UUID, by: By) -> Import:
    """Undo an import as a whole: its session takes no calls, the file may be imported anew.

    What may have happened outside is not undone by it: a call whose effect is possible stays on
    its file until a person has decided. Discarding again changes nothing. Raises NotFound,
    ImportContinued.
    """
    row = keeping.locked(reader, import_id)
    if row.discarded_at is not None:
        return row
    Import.objects.filter(id=row.id).update(discarded_at=ClockTimestamp())
    row.refresh_from_db(fields=["discarded_at"])
    _stop(row, by)
    return row


def _stop(row: Import, by: By) -> None:
    """Let the session go no further: what waits without an effect is cancelled (R50)."""
    Session.objects.filter(id=row.session_id).update(stopped_at=ClockTimestamp())
    SessionChange.objects.create(
        workspace_id=row.workspace_id, session_id=row.session_id, kind="stopped",
        by_id=by.id, by_name=by.name, grounds=DISCARDED,
    )  # fmt: skip
    found = (
        ToolCall.objects.open()
        .filter(session=row.session_id, state__in=calls.AT_REST)
        .exclude(effect=Effect.POSSIBLE)
        .order_by("id")
        .select_for_update(of=("self",))
    )
    stopped = list(found)
    if not stopped:
        return
    journal.append(
        [
            Move(call=call, kind="cancelled", by=by.actor, by_id=by.id,
                 facts={"grounds": DISCARDED}, columns={"reason": "stopped"})
            for call in stopped
        ]
    )  # fmt: skip
    waiting.tell([call.id for call in stopped])
