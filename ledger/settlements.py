"""Settling: results in groups, and what comes too late kept as evidence (I13, I14).

A report is settled only under the fence that is current, read under the call's lock; a
repetition is answered the same, and a lost fence's report is never a result and never dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from ledger import evidence, journal, strictjson, waiting
from ledger.claims import Claim
from ledger.errors import FenceLost
from ledger.journal import Move, Position
from ledger.models import (
    Attempt,
    Result,
    ToolCall,
)
from ledger.pipelines import pipelined
from ledger.tables import table
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    Deadline,
    Effect,
    Meaning,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """A tool's success as its worker reports it; `stored` comes from `strictjson.storable`."""

    claim: Claim
    stored: strictjson.Stored
    media_type: str
    changed_nothing: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)


@repeatable
def settle(settlements: Sequence[Settlement]) -> list[None | Exception]:
    """Settle calls with their results; each answer is None, or FenceLost for that one alone.

    What a lost fence brings is kept as evidence in the same transaction (I14).
    """
    held = _hold_many([(s.claim.call_id, s.claim.fence) for s in settlements])
    good = [s for s in settlements if (s.claim.call_id, s.claim.fence) in held]
    if good:
        with pipelined():
            _insert_results(good, held)
            _end_many([s.claim.attempt_id for s in good])
            journal.append([_success(s, held[s.claim.call_id, s.claim.fence]) for s in good])
            waiting.tell([s.claim.call_id for s in good])
    answers: list[None | Exception] = []
    for each in settlements:
        if (each.claim.call_id, each.claim.fence) in held or _is_settled_by(each):
            answers.append(None)
            continue
        keep_late(
            each.claim, each.stored, each.media_type, None, changed_nothing=each.changed_nothing
        )
        answers.append(FenceLost(fence=each.claim.fence))
    return answers


def _hold_many(wanted: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], Position]:
    """Lock the calls, and return where those stand whose fence is current and not lost."""
    with connection.cursor() as cursor:
        if len(wanted) > 1:
            # A lost fence's call is locked too, for its evidence: all of them in one order.
            cursor.execute(
                "SELECT id FROM ledger_toolcall WHERE id = ANY(%s) ORDER BY id FOR UPDATE",
                [[call_id for call_id, _ in wanted]],
            )
        cursor.execute(
            "SELECT c.id, c.workspace_id, c.state, c.effect, c.seq, c.fence FROM ledger_toolcall c "
            "JOIN unnest(%s::uuid[], %s::int[]) AS w(id, fence) ON w.id = c.id "
            "JOIN ledger_attempt a ON a.call_id = c.id AND a.fence = w.fence "
            "WHERE c.fence = w.fence AND a.ended_at IS NULL AND a.fence_lost_at IS NULL "
            "ORDER BY c.id FOR UPDATE OF c, a",
            [[call_id for call_id, _ in wanted], [fence for _, fence in wanted]],
        )
        return {
            (row[0], row[5]): Position(row[0], row[1], CallState(row[2]), Effect(row[3]), row[4])
            for row in cursor.fetchall()
        }


RESULT_COLUMNS = (
    ("call_id", "uuid"),
    ("workspace_id", "uuid"),
    ("fence", "integer"),
    ("event_seq", "integer"),
    ("is_error", "boolean"),
    ("media_type", "text"),
    ("body", "bytea"),
    ("sha256", "text"),
    ("size_bytes", "bigint"),
    ("truncated", "boolean"),
    ("why_not_json", "text"),
)
RESULT_NAMES = ", ".join(name for name, _ in RESULT_COLUMNS)
INSERT_RESULTS = (
    f"INSERT INTO ledger_result ({RESULT_NAMES}) "  # noqa: S608 names of our own
    "SELECT * FROM {}"
)


def _insert_results(
    settlements: Sequence[Settlement], held: Mapping[tuple[UUID, int], Position]
) -> None:
    rows = [
        (
            s.claim.call_id,
            s.claim.workspace_id,
            s.claim.fence,
            held[s.claim.call_id, s.claim.fence].seq + 1,
            False,
            s.media_type[:200],
            s.stored.body,
            s.stored.sha256,
            s.stored.size_bytes,
            s.stored.truncated,
            s.stored.why_not_json[:300],
        )
        for s in settlements
    ]
    with connection.cursor() as cursor:
        text, parameters = table(RESULT_COLUMNS, rows)
        cursor.execute(INSERT_RESULTS.format(text), parameters)


def _end_many(attempt_ids: Sequence[UUID]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_attempt SET ended_at = clock_timestamp(), outcome = 'succeeded', "
            "means = 'known', dead_at = clock_timestamp(), "
            "dead_proof = CASE dead_proof WHEN '' THEN 'reported' ELSE dead_proof END "
            "WHERE id = ANY(%s)",
            [list(attempt_ids)],
        )


def _success(settlement: Settlement, position: Position) -> Move:
    effect = Effect.HAPPENED
    if position.effect is Effect.NONE:
        effect = Effect.NONE
    elif position.effect is not Effect.POSSIBLE or _changed_nothing(settlement):
        # The tool never came to its boundary, or says that it changed nothing.
        effect = Effect.DID_NOT_HAPPEN
    return Move(
        call=position,
        kind="succeeded",
        by=Actor.WORKER,
        effect=effect,
        fence=settlement.claim.fence,
        facts={"result_sha256": settlement.stored.sha256, **settlement.evidence},
    )


def _changed_nothing(settlement: Settlement) -> bool:
    """Whether the tool says so; what an earlier attempt may have changed it cannot deny."""
    return (
        settlement.changed_nothing
        and not Attempt.objects.filter(
            call=settlement.claim.call_id,
            fence__lt=settlement.claim.fence,
            crossed_at__isnull=False,
            disproved_at__isnull=True,
        )
        .exclude(means__in=(Meaning.NOT_BEGUN, Meaning.REFUSED))
        .exists()
    )


def _is_settled_by(settlement: Settlement) -> bool:
    """Whether this very report was committed before, its answer lost: the same answer then."""
    return Result.objects.filter(
        call=settlement.claim.call_id,
        fence=settlement.claim.fence,
        sha256=settlement.stored.sha256,
    ).exists()


@repeatable
def file_late(
    *,
    claim: Claim,
    stored: strictjson.Stored,
    media_type: str,
    cause: Cause | None,
    is_result: bool = True,
) -> None:
    """Keep what an attempt reports after it lost its fence. Never dropped, never a result (I14)."""
    keep_late(claim, stored, media_type, cause, is_result=is_result)


def keep_late(
    claim: Claim,
    stored: strictjson.Stored,
    media_type: str,
    cause: Cause | None,
    *,
    is_result: bool = True,
    changed_nothing: bool = False,
) -> None:
    """Store a late report as evidence, inside the caller's transaction.

    Only a result can be adopted: that work was parked, or why it ended, is none; and adopting
    the result of a tool that changed nothing would say that its effect happened.
    """
    is_result = is_result and cause is None
    finding = "did_not_happen" if changed_nothing else "happened" if is_result else "unknown"
    call = ToolCall.objects.locked(claim.call_id)
    kept, new = evidence.keep(
        call,
        kind="late_result",
        attempt_id=claim.attempt_id,
        stored=stored,
        media_type=media_type,
        finding=finding,
        message=str(cause or ""),
        adoptable=finding == "happened" and claim.arguments_sha256 == call.arguments_sha256,
    )
    if not new:
        return
    undecided = call.state in (CallState.INTERRUPTED, CallState.AMBIGUOUS)
    arm = {Deadline.NEXT_STEP: 0.0} if undecided else {}
    columns = {"reason": "late_result"} if undecided else {}
    journal.append(
        [
            Move(
                call=call,
                kind="late_result",
                by=Actor.WORKER,
                fence=claim.fence,
                cause=cause,
                facts={"evidence": kept.id.hex, "sha256": stored.sha256},
                arm=arm,
                columns=columns,
            )
        ]
    )
