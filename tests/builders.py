"""Calls in every state, built by walking the real verbs, so that no history is impossible.

`a_call(acme, in_state="ambiguous")` records, publishes, claims, crosses and lets the watchdog
find the silence. `past` makes a deadline pass by moving the row, never the clock; `fire` lets
the watchdog act on it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from ledger import (
    attempts,
    calls,
    claims,
    handles,
    ids,
    registry,
    sessions,
    settlements,
    strictjson,
    submits,
    workers,
)
from ledger.claims import Claim
from ledger.errors import LedgerError
from ledger.handles import HandleToStore
from ledger.models import Agent, Session, Tool, ToolCall, Turn, Worker
from ledger.registry import Author, Declaration
from ledger.settlements import Settlement
from ledger.submits import Recorded, Submit
from ledger.vocabulary import (
    CallState,
    Cause,
    Deadline,
    Effect,
    FenceKind,
    Meaning,
    ProbeFinding,
    ProofOfDeath,
    RecoveryClass,
)
from ledger.workers import Holder
from recovery import failures as recovery_failures
from recovery import reports, watchdog
from tests.cast import Acme, Globex

AUTHOR = Author(name="olga", grounds="The tests need it.")
ALL_QUEUES = ("effects", "reads", "control")
NO_JITTER = {"jitter": False}
ARGUMENTS = {"path": "report.txt"}

_holders: list[Holder] = []
_claims: dict[UUID, Claim] = {}


# What a call needs


def a_worker(
    name: str = "worker-1", *, fence_kind: FenceKind = FenceKind.KERNEL, slots: int = 4
) -> Holder:
    """Register a worker whose lock this connection holds."""
    holder = workers.register(name=name, queues=ALL_QUEUES, slots=slots, fence_kind=fence_kind)
    _holders[:] = [holder]
    return holder


def the_worker() -> Holder:
    """The worker registered last in this test, or a new one."""
    if _holders and Worker.objects.filter(id=_holders[0].id).exists():
        return _holders[0]
    return a_worker()


def a_policy(
    recovery_class: str = "side_effect", *, probe: Mapping[str, Any] | None = None, **knobs: Any
) -> dict[str, Any]:
    """A policy document of a class; what it must have is filled in. Waits are not jittered."""
    document: dict[str, Any] = {"recovery_class": recovery_class, **knobs}
    document["retry"] = {**NO_JITTER, **knobs.get("retry", {})}
    if recovery_class == RecoveryClass.IDEMPOTENT_WRITE:
        document.setdefault("key_template", "path:{path}")
    if probe is not None:
        document["probe"] = dict(probe)
    return document


def a_tool(
    at: Acme | Globex,
    name: str = "",
    recovery_class: str = "side_effect",
    *,
    input_schema: Mapping[str, Any] | None = None,
    executor: str = "python",
    config: Mapping[str, Any] | None = None,
    handles: bool = False,
    **policy: Any,
) -> Tool:
    """Register a tool; `policy` are knobs of its policy. With a `probe` it can be probed."""
    declaration = Declaration(
        name=name or f"{recovery_class}.{ids.new().hex[-8:]}",
        executor=executor,
        config=config or {},
        input_schema=input_schema or {},
        handles=handles or recovery_class == "long_running",
        probes=policy.get("probe") is not None,
    )
    return registry.put(
        workspace=at.workspace,
        declaration=declaration,
        policy=a_policy(recovery_class, **policy),
        by=AUTHOR,
    )


def a_session(at: Acme | Globex, *, agent: Agent | None = None, **binding: Any) -> Session:
    return sessions.open_session(
        workspace_id=at.workspace.id, agent_id=(agent or _first_agent(at)).id, **binding
    )[0]


def a_turn(session: Session, **fields: Any) -> Turn:
    return sessions.open_turn(session=session, **fields)[0]


def _first_agent(at: Acme | Globex) -> Agent:
    return at.ada if isinstance(at, Acme) else at.mallory


# Submitting


def a_submit(
    at: Acme | Globex,
    tool: Tool | str,
    *,
    agent: Agent | None = None,
    arguments: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Submit:
    """The wish of Acme's Ada (or Globex's Mallory) to use a tool."""
    return Submit(
        workspace_id=at.workspace.id,
        agent_id=(agent or _first_agent(at)).id,
        tool=tool if isinstance(tool, str) else tool.name,
        arguments=dict(ARGUMENTS if arguments is None else arguments),
        **fields,
    )


def answer_to(submit: Submit) -> Recorded:
    """Record one submit. Raises its refusal."""
    answer = submits.record([submit])[0]
    if isinstance(answer, LedgerError):
        raise answer
    return answer


def fresh(call: ToolCall | UUID) -> ToolCall:
    """The call as it stands now."""
    return ToolCall.objects.get(id=call if isinstance(call, UUID) else call.id)


# Working


def claim_of(call: ToolCall) -> Claim:
    """The last claim that a builder won for this call."""
    return _claims[call.id]


def claimed(call: ToolCall, *, by: Holder | None = None) -> Claim:
    """Let a worker claim this very call: a run, or a due poll or probe."""
    queue = call.queue if fresh(call).state is CallState.SCHEDULED else "control"
    _to_the_front(call)
    won = claims.claim(queue=queue, holder=by or the_worker(), limit=1)
    assert [each.call_id for each in won] == [call.id], "the call could not be claimed"
    _claims[call.id] = won[0]
    return won[0]


def _to_the_front(call: ToolCall) -> None:
    with connection.cursor() as cursor:
        for column in ("published_at", "next_poll_at", "next_step_at"):
            cursor.execute(
                f"UPDATE ledger_toolcall SET {column} = {column} - interval '1 hour' "
                f"WHERE id = %s AND ({column} <= clock_timestamp())",
                [call.id],
            )


def cross(call: ToolCall) -> None:
    claim = claim_of(call)
    attempts.cross(call_id=call.id, fence=claim.fence)


def settlement(claim: Claim, result: Any = None, **more: Any) -> Settlement:
    """A success with `result` as its JSON."""
    return Settlement(
        claim=claim,
        stored=strictjson.storable({"ok": True} if result is None else result),
        media_type="application/json",
        **more,
    )


def settle(call: ToolCall, result: Any = None, **more: Any) -> None:
    """Report a success. Raises FenceLost where it comes too late."""
    answer = settlements.settle([settlement(claim_of(call), result, **more)])[0]
    if answer is not None:
        raise answer


def report(
    call: ToolCall,
    cause: Cause,
    means: Meaning,
    *,
    proof: ProofOfDeath = ProofOfDeath.REPORTED,
    **more: Any,
) -> None:
    """Report that the call's attempt ended otherwise."""
    reports.ended(claim=claim_of(call), cause=cause, means=means, proof=proof, **more)


def park(call: ToolCall, value: str = "", **handle: Any) -> None:
    claim = claim_of(call)
    handles.park(
        call_id=call.id,
        fence=claim.fence,
        handle=HandleToStore(value=value or f"run-{call.id.hex}", **handle),
    )


def probe(call: ToolCall, finding: ProbeFinding, *, effects: int = 1) -> None:
    """Claim the due probe of a call and answer it."""
    reports.probed(claim=claimed(call), finding=finding, effects=effects)


def poll(call: ToolCall) -> Claim:
    """Let the next poll of a parked call fall due, and claim it."""
    past(call, Deadline.NEXT_POLL)
    return claimed(call)


# Time


def past(call: ToolCall, *deadlines: str) -> ToolCall:
    """Let deadlines of a call have passed one second ago; `heartbeat` ends the lease too."""
    with connection.cursor() as cursor:
        for deadline in map(Deadline, deadlines):
            cursor.execute(
                f"UPDATE ledger_toolcall SET {deadline}_at = clock_timestamp() "
                f"- interval '1 second' WHERE id = %s AND {deadline}_at IS NOT NULL",
                [call.id],
            )
            assert cursor.rowcount == 1, f"{deadline} is not armed in {fresh(call).state}"
            if deadline is Deadline.HEARTBEAT:
                end_lease(call)
    return fresh(call)


def end_lease(call: ToolCall, *, seconds_ago: float = 1.0) -> None:
    """Let the lease of the call's last attempt have ended."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_attempt SET lease_until = clock_timestamp() - %s * interval '1 second' "
            "WHERE call_id = %s AND fence = (SELECT fence FROM ledger_toolcall WHERE id = %s)",
            [seconds_ago, call.id, call.id],
        )


def unlock_denial(call: ToolCall) -> None:
    """Let the lost attempts of a call be proven dead, and their in-flight grace be over."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_attempt SET lease_until = clock_timestamp() - interval '1 hour' "
            "WHERE call_id = %s AND outcome = 'lost' AND dead_proof = ''",
            [call.id],
        )
        watchdog.prove_dead()
        cursor.execute(
            "UPDATE ledger_attempt SET unlocks_at = clock_timestamp() - interval '1 second' "
            "WHERE call_id = %s AND unlocks_at > clock_timestamp()",
            [call.id],
        )


class Failures(logging.Handler):
    """What the watchdog only writes to its log, because one row must not stop a sweep."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(logging.Formatter().format(record))


def fire() -> int:
    """Let the watchdog act once on what is due; a row that it cannot move is an error here."""
    failures = Failures()
    recovery_failures.log.addHandler(failures)
    try:
        acted = watchdog.fire_due()
    finally:
        recovery_failures.log.removeHandler(failures)
    assert not failures.said, failures.said[0]
    return acted


def lost(call: ToolCall) -> ToolCall:
    """The worker falls silent until its lease ends, and the watchdog finds it."""
    past(call, Deadline.HEARTBEAT)
    fire()
    return fresh(call)


# Calls


def a_call(
    at: Acme | Globex,
    in_state: str = "scheduled",
    recovery_class: str = "side_effect",
    *,
    tool: Tool | None = None,
    crossed: bool | None = None,
    policy: Mapping[str, Any] | None = None,
    **submit: Any,
) -> ToolCall:
    """A call in a state, come there by the verbs. `policy` are knobs of a tool made for it.

    `crossed` says whether a `running` call crossed its boundary. A read is never `interrupted`
    or `ambiguous`, so these need another class.
    """
    tool = tool or a_tool(at, recovery_class=recovery_class, **(policy or {}))
    walk = WALKS[CallState(in_state)]
    if in_state == CallState.REJECTED:
        registry.switch(workspace_id=at.workspace.id, tool_name=tool.name, on=False, by=AUTHOR)
    if in_state == CallState.PAUSED and "session_id" not in submit:
        submit |= _asked_before(at, tool, **submit)
    call = fresh(answer_to(a_submit(at, tool, **submit)).call_id)
    walk(call)
    if crossed and in_state == CallState.RUNNING:
        cross(call)
    call = fresh(call)
    assert call.state == in_state, f"the walk to {in_state} ended in {call.state}"
    return call


def _asked_before(
    at: Acme | Globex, tool: Tool, *, agent: Agent | None = None, **submit: Any
) -> dict[str, Any]:
    """Record the same call in a session, so that the next one is held as its twin."""
    place = {"session_id": a_session(at, agent=agent).id}
    named = {"idempotency_key": None, "tool_call_id": "toolu_before"}
    answer_to(a_submit(at, tool, agent=agent, **submit | place | named))
    return place


def a_job_whose_handle_was_lost(
    at: Acme | Globex, recovery_class: str = "long_running", *, partial: Sequence[bytes] = ()
) -> ToolCall:
    """Work that was parked, and that the outside does not know any more: an operator's turn."""
    call = a_call(at, "parked", recovery_class)
    claim = poll(call)
    for piece in partial:
        attempts.heartbeat(call_id=call.id, fence=claim.fence, partial=piece)
    report(call, Cause.VANISHED, Meaning.UNKNOWN)
    fire()
    return fresh(call)


def _stay(call: ToolCall) -> None:
    """A submit leaves the call there already."""


def _claim_and_cross(call: ToolCall) -> None:
    claimed(call)
    if call.effect is not Effect.NONE:
        cross(call)


def _parked(call: ToolCall) -> None:
    _claim_and_cross(call)
    park(call)


def _backing_off(call: ToolCall) -> None:
    claimed(call)
    report(call, Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)


def _interrupted(call: ToolCall) -> None:
    _claim_and_cross(call)
    lost(call)


def _ambiguous(call: ToolCall) -> None:
    with transaction.atomic():
        _interrupted(call)
        past(call, Deadline.NEXT_STEP)
        fire()
        if fresh(call).state is CallState.INTERRUPTED:
            past(call, Deadline.RECOVERY_WINDOW)
            fire()


def _succeeded(call: ToolCall) -> None:
    _claim_and_cross(call)
    settle(call)


def _failed(call: ToolCall) -> None:
    _claim_and_cross(call)
    report(call, Cause.VALIDATION, Meaning.REFUSED, message="The outside refused the arguments.")


def _cancelled(call: ToolCall) -> None:
    calls.cancel(workspace_id=call.workspace_id, agent_id=call.agent_id, call_id=call.id)


def _expired(call: ToolCall) -> None:
    past(call, Deadline.SCHEDULE_TO_START)
    fire()


WALKS: dict[CallState, Callable[[ToolCall], Any]] = {
    CallState.SCHEDULED: _stay,
    CallState.REJECTED: _stay,
    CallState.PAUSED: _stay,
    CallState.RUNNING: claimed,
    CallState.PARKED: _parked,
    CallState.BACKING_OFF: _backing_off,
    CallState.INTERRUPTED: _interrupted,
    CallState.AMBIGUOUS: _ambiguous,
    CallState.SUCCEEDED: _succeeded,
    CallState.FAILED: _failed,
    CallState.CANCELLED: _cancelled,
    CallState.EXPIRED: _expired,
}
"""How a call gets into each state that verbs reach today."""
