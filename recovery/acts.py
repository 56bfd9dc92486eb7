"""Carries out a decision: the moves in the journal, and the line on the incident.

The one place where an act becomes transitions, for workers' reports and for the sweeps alike.
Runs in its caller's transaction, under the call's lock. Ringing follows the commit.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from ledger import attempts, clock, dispatch, faults, journal, kept_notices, notices, waiting
from ledger.journal import Move
from ledger.models import Evidence, ToolCall
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    Deadline,
    Effect,
    FailurePoint,
    RecoveryClass,
)
from recovery import budgets, fences, incidents, results
from recovery.budgets import Allowed
from recovery.decisions import Act, CallSnapshot, Decision, without_budget

WATCHED = (CallState.INTERRUPTED, CallState.AMBIGUOUS)
TIMER_PROBES = (RecoveryClass.IDEMPOTENT_WRITE, RecoveryClass.LONG_RUNNING)
PROBED_BYTES_READ = 4096


def carry_out(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    """Make the moves of a decision and write it on the call's incident."""
    faults.point("before_decision", call.id, call.tool)
    if decision.act is Act.RETRY:
        decision = _afforded(call, case, decision)
    if decision.scope is not None:
        budgets.refuse(call, decision.scope, decision.grounds)
    incidents.write(call, case, decision)
    if decision.effect is Effect.DID_NOT_HAPPEN and call.effect is Effect.POSSIBLE:
        attempts.disprove(call)
    _ACTS[decision.act](call, case, decision)
    if call.is_settled:
        waiting.tell([call.id])
    faults.point("after_decision", call.id, call.tool)


def _afforded(call: ToolCall, case: CallSnapshot, decision: Decision) -> Decision:
    """The repeat, reserved in every scope; or what follows where one of them is spent (R48)."""
    wanted = Allowed(rule=decision.rule, grounds=decision.grounds, wait_s=decision.wait_s)
    refused = budgets.reserve(call, wanted)
    if refused is None:
        return decision
    return without_budget(case, decision, refused.scope, refused.sentence, now=clock.now())


def _facts(decision: Decision, **more: Any) -> dict[str, Any]:
    scope = {"scope": str(decision.scope)} if decision.scope is not None else {}
    return {"rule": decision.rule, "grounds": decision.grounds} | scope | more


def _reason(decision: Decision) -> str:
    """Why the call was settled, in one word: a wider budget before the deadline that it names."""
    return decision.rule if decision.rule == "budget_spent" else decision.deadline or decision.rule


def _retry(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    _back_off(call, decision, wait_s=decision.wait_s)


def _back_off(call: ToolCall, decision: Decision, *, wait_s: float) -> None:
    """Leave for `backing_off`, by the event that the present state has for it."""
    kind = "cleared_for_retry" if call.state in WATCHED else "attempt_failed"
    cause = call.cause or Cause.INTERNAL
    journal.append(
        [
            Move(
                call=call,
                kind=kind,
                by=Actor.RECOVERY,
                effect=decision.effect or call.effect,
                cause=cause if kind == "attempt_failed" else None,
                facts=_facts(decision),
                arm={Deadline.BACKOFF: wait_s},
                columns={"reason": decision.rule},
            )
        ]
    )


def _settle_from_rest(kind: str) -> Callable[[ToolCall, CallSnapshot, Decision], None]:
    """`expired` and `cancelled` leave from a call at rest, so a running one backs off first."""

    def settle(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
        if call.state in (CallState.RUNNING, CallState.PARKED, *WATCHED):
            _back_off(call, decision, wait_s=0.0)
        more = {"deadline": decision.deadline or "schedule_to_close"} if kind == "expired" else {}
        journal.append(
            [
                Move(
                    call=call,
                    kind=kind,
                    by=decision.by if kind == "cancelled" else Actor.RECOVERY,
                    by_id=decision.by_id if kind == "cancelled" else "",
                    facts=_facts(decision, **more),
                    columns={"reason": _reason(decision)},
                )
            ]
        )

    return settle


def _fail(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    journal.append(
        [
            Move(
                call=call,
                kind="failed",
                by=Actor.RECOVERY,
                effect=decision.effect or call.effect,
                cause=call.cause or Cause.INTERNAL,
                facts=_facts(decision),
                columns={"reason": decision.rule},
            )
        ]
    )


def _interrupt(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    cause = call.cause or Cause.WORKER_LOST
    point = FailurePoint.AFTER_EXECUTION if case.late_result else FailurePoint.DURING_EXECUTION
    journal.append(
        [
            Move(
                call=call,
                kind="interrupted",
                by=Actor.RECOVERY,
                effect=call.effect,
                cause=cause,
                facts=_facts(decision, failure_point=point),
                # The attempt has ended: a lease left armed would keep probes from being claimed.
                arm={
                    Deadline.NEXT_STEP: 0.0,
                    Deadline.RECOVERY_WINDOW: case.policy.armed_window_s,
                    Deadline.HEARTBEAT: None,
                },
                columns={"failure_point": str(point), "reason": ""},
            )
        ]
    )
    incident = incidents.open_for(call, cause=cause, failure_point=point)
    incidents.began(incident, call, case, decision)


def _escalate(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    probe = case.policy.probe
    again = case.has_probe and probe is not None and case.recovery_class in TIMER_PROBES
    arm: dict[Deadline, float | None] = {
        Deadline.REVIEW: case.policy.review_s,
        Deadline.NEXT_STEP: None,
    }
    if again and probe is not None:
        arm[Deadline.NEXT_STEP] = probe.interval_s
    journal.append(
        [
            Move(
                call=call,
                kind="escalated",
                by=decision.by,
                by_id=decision.by_id,
                facts=_facts(decision, reason=str(decision.reason)),
                arm=arm,
                columns={"reason": "probe_due" if again else str(decision.reason)},
            )
        ]
    )
    waiting.tell([call.id])


def _resume(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    journal.append(
        [
            Move(
                call=call,
                kind="resumed",
                by=Actor.RECOVERY,
                facts=_facts(decision),
                arm={Deadline.NEXT_POLL: 0.0, Deadline.HEARTBEAT: None},
                columns={"reason": decision.rule},
            )
        ]
    )
    dispatch.ring_after_commit(["control"], call.id)


def _date(call: ToolCall, decision: Decision, *, reason: str) -> None:
    """Date the next step; no event, since nothing happened to the call."""
    ToolCall.objects.filter(id=call.id).update(next_step_at=decision.until, reason=reason)


def _wait(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    _date(call, decision, reason=call.reason)


def _probe(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    _date(call, decision, reason="probe_due")
    dispatch.ring_after_commit(["control"], call.id)


def _proved(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    journal.append(
        [
            Move(
                call=call,
                kind="proved_done",
                by=Actor.RECOVERY,
                effect=Effect.HAPPENED,
                facts=_facts(decision),
                columns={"reason": decision.rule},
            )
        ]
    )
    found = Evidence.objects.filter(call=call, kind="probe", finding="happened").latest("at")
    body = bytes(found.body[:PROBED_BYTES_READ]).decode("utf-8", "replace")
    answer = notices.quoted(body, found.size_bytes)
    kept_notices.keep(call, notices.render("happened_probe", evidence=answer))


def _adopt(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    """Settle by the late result; a newer attempt that has not crossed is fenced first."""
    fences.take(call, Cause.OVERTAKEN)
    evidence_id = case.late_result or UUID(int=0)
    fence = results.adopt(call, evidence_id)
    journal.append(
        [
            Move(
                call=call,
                kind="adopted",
                to=CallState.SUCCEEDED,
                by=Actor.RECOVERY,
                effect=decision.effect,
                fence=fence,
                facts=_facts(decision, evidence=evidence_id.hex),
                columns={"reason": decision.rule},
            )
        ]
    )


_ACTS: dict[Act, Callable[[ToolCall, CallSnapshot, Decision], None]] = {
    Act.RETRY: _retry,
    Act.EXPIRE: _settle_from_rest("expired"),
    Act.CANCEL: _settle_from_rest("cancelled"),
    Act.FAIL: _fail,
    Act.INTERRUPT: _interrupt,
    Act.ESCALATE: _escalate,
    Act.RESUME: _resume,
    Act.WAIT: _wait,
    Act.PROBE: _probe,
    Act.PROVED: _proved,
    Act.ADOPT: _adopt,
}
