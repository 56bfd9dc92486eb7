"""Settling: results in groups, and what comes too late kept as evidence (I13, I14).

A report is settled only under the fence that is current, read under the call's lock; a
repetition is answered the same, and a lost fence's report is never a result and never dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ledger import evidence, journal, strictjson, waiting
from ledger.claims import Claim
from ledger.errors import FenceLost
from ledger.journal import Move, Position
from ledger.models import (
    Attempt,
    Examination,
    Result,
    ToolCall,
)
from ledger.pipelines import pipelined, rows, write
from ledger.tables import table
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    Deadline,
    Effect,
    Meaning,
    ProbeFinding,
)

BEFORE_A_BOUNDARY = (CallState.SCHEDULED, CallState.RUNNING, CallState.BACKING_OFF)
"""Where a late result may still spare the newer attempt its boundary; recovery is told at once."""


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
    if len(settlements) > 1:
        _lock([s.claim.call_id for s in settlements])
    held = _end_held([s.claim.attempt_id for s in settlements])
    answers: list[None | Exception] = [_answer(each, held) for each in settlements]
    good = [s for s in settlements if s.claim.attempt_id in held]
    if good:
        with pipelined(commit=True):
            _insert_results(good, held)
            journal.append([_success(s, held[s.claim.attempt_id]) for s in good])
            waiting.tell([s.claim.call_id for s in good])
    return answers


def _lock(call_ids: Sequence[UUID]) -> None:
    """Lock the calls in one order, those of lost fences too, which are locked for evidence."""
    text, parameters = table((("id", "uuid"),), [(id_,) for id_ in call_ids])
    rows(f"SELECT c.id FROM {text} JOIN ledger_toolcall c USING (id) ORDER BY c.id FOR UPDATE OF c",  # noqa: S608 a table of parameters
         parameters)  # fmt: skip


def _answer(settlement: Settlement, held: Mapping[UUID, Position]) -> FenceLost | None:
    """None for what is settled, now or before; else the report becomes evidence."""
    if settlement.claim.attempt_id in held or _is_settled_by(settlement):
        return None
    keep_late(
        settlement.claim, settlement.stored, settlement.media_type, None,
        changed_nothing=settlement.changed_nothing,
    )  # fmt: skip
    return FenceLost(fence=settlement.claim.fence)


END_HELD = (
    "WITH held AS (SELECT c.id, c.workspace_id, c.state, c.effect, c.seq, a.id AS attempt_id "
    "FROM {} JOIN ledger_attempt a ON a.id = v.id "
    "JOIN ledger_toolcall c ON c.id = a.call_id AND c.fence = a.fence "
    "ORDER BY c.id FOR UPDATE OF c) "
    "UPDATE ledger_attempt a SET ended_at = clock_timestamp(), outcome = 'succeeded', "
    "means = 'known', dead_at = clock_timestamp(), "
    "dead_proof = CASE a.dead_proof WHEN '' THEN 'reported' ELSE a.dead_proof END "
    "FROM held WHERE a.id = held.attempt_id AND a.ended_at IS NULL AND a.fence_lost_at IS NULL "
    "RETURNING a.id, held.id, held.workspace_id, held.state, held.effect, held.seq"
)


def _end_held(attempt_ids: Sequence[UUID]) -> dict[UUID, Position]:
    """End those attempts that hold their calls, under the calls' locks; where the calls stand."""
    # The watchdog may have taken the fence while we waited for the call's lock: PostgreSQL looks
    # at the attempt's row again before it ends it, so a lost one is left as it is.
    text, parameters = table((("id", "uuid"),), [(id_,) for id_ in attempt_ids])
    return {
        attempt_id: Position(call_id, workspace_id, CallState(state), Effect(effect), seq)
        for attempt_id, call_id, workspace_id, state, effect, seq in rows(
            END_HELD.format(text), parameters
        )
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


def _insert_results(settlements: Sequence[Settlement], held: Mapping[UUID, Position]) -> None:
    results = [
        (
            s.claim.call_id,
            s.claim.workspace_id,
            s.claim.fence,
            held[s.claim.attempt_id].seq + 1,
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
    text, parameters = table(RESULT_COLUMNS, results)
    write(INSERT_RESULTS.format(text), parameters)


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
    Examination.objects.create(evidence=kept)
    arm, columns = _news_for_recovery(call, adoptable=kept.adoptable)
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


def _news_for_recovery(
    call: ToolCall, *, adoptable: bool
) -> tuple[dict[Deadline, float | None], dict[str, str]]:
    """Let recovery look at once, where the late result can still decide something."""
    if call.state in (CallState.INTERRUPTED, CallState.AMBIGUOUS):
        return {Deadline.NEXT_STEP: 0.0}, {"reason": "late_result"}
    if adoptable and call.state in BEFORE_A_BOUNDARY:
        return {Deadline.NEXT_STEP: 0.0}, {}
    return {}, {}


@repeatable
def file_late_answer(
    *,
    claim: Claim,
    finding: ProbeFinding,
    stored: strictjson.Stored,
    media_type: str,
    message: str,
) -> None:
    """Keep what a probe found after it lost its fence. Its call may be settled otherwise by now."""
    call = ToolCall.objects.locked(claim.call_id)
    kept, new = evidence.keep(
        call, kind="probe", attempt_id=claim.attempt_id, stored=stored, media_type=media_type,
        finding=finding, message=message,
    )  # fmt: skip
    if not new:
        return
    Examination.objects.create(evidence=kept)
    if finding is ProbeFinding.HAPPENED:
        # A positive answer always counts (semantics, section 6, rule 1), however late it is.
        Attempt.objects.filter(id=claim.attempt_id).update(finding=finding)
    arm, columns = _news_for_recovery(call, adoptable=False)
    journal.append(
        [
            Move(
                call=call,
                kind="late_result",
                by=Actor.WORKER,
                fence=claim.fence,
                facts={"evidence": kept.id.hex, "finding": str(finding)},
                arm=arm,
                columns=columns,
            )
        ]
    )
