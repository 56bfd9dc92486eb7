"""Execute one claimed attempt and report it: the only place where an exception becomes an outcome.

`execute` runs in the tool child (effects) or in a thread (reads, polls, probes) and never
touches the ledger itself; `report` runs where the line to the ledger is, and puts each kind of
outcome to the verb it belongs to. What a lost fence brings is filed as evidence.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from django.conf import settings

from executors.command.executor import CommandExecutor
from executors.contract import (
    Assignment,
    Context,
    Executor,
    FenceLost,
    Handle,
    Outcome,
    ProbeAnswer,
    Result,
)
from executors.http.executor import HttpExecutor
from executors.python import PythonExecutor, registry
from ledger import errors, handles, secrets, settlements, strictjson
from ledger.claims import Claim
from ledger.handles import HandleToStore
from ledger.settlements import Settlement
from ledger.vocabulary import (
    AttemptKind,
    Cause,
    Meaning,
    ProbeFinding,
    ProofOfDeath,
    RecoveryClass,
)


@cache
def executors() -> dict[str, Executor]:
    """The kinds of executor, by the name that a tool's version carries."""
    registry.load(settings.ENVIRONMENT.tool_modules.split(","))
    return {
        "python": PythonExecutor(),
        "http": HttpExecutor(),
        "command": CommandExecutor(),
    }


def assignment_of(claim: Claim) -> Assignment:
    """What the executor may know of a claim."""
    stored = claim.handle
    handle = stored and Handle(
        value=secrets.decrypt(stored.value_encrypted),
        kind=stored.kind,
        endpoint=stored.endpoint,
        poll_after_s=stored.poll_after_s,
    )
    return Assignment(
        call_id=claim.call_id,
        fence=claim.run_number if claim.kind is AttemptKind.RUN else claim.fence,
        kind=claim.kind,
        workspace_id=claim.workspace_id,
        tool=claim.tool,
        # A Python tool knows the version it declares; ours counts what was registered.
        tool_version=claim.config.get("version", 1) if claim.executor == "python"
        else claim.tool_version,
        executor=claim.executor,
        executor_config=claim.config,
        recovery_class=claim.policy.recovery_class,
        boundary=claim.policy.boundary,
        arguments=claim.arguments,
        idempotency_key=claim.effect_key,
        marker=claim.marker,
        cursor=claim.cursor,
        handle=handle or None,
        lease_s=claim.lease_s,
        start_to_close_s=claim.start_to_close_s,
        schedule_to_close_s=claim.schedule_to_close_s,
        attempts_left=claim.attempts_left,
        cancel_requested=claim.cancel_requested,
        traceparent=claim.traceparent,
    )  # fmt: skip


def execute(assignment: Assignment, context: Context) -> Outcome | ProbeAnswer:
    """Do what the attempt is for. Raises FenceLost and nothing else."""
    try:
        executor = executors()[assignment.executor]
        verb: Callable[[Assignment, Context], Any] = {
            AttemptKind.RUN: executor.run,
            AttemptKind.RESUME: executor.run,
            AttemptKind.POLL: _cancel_or_poll(executor),
            AttemptKind.PROBE: executor.probe,
        }[assignment.kind]
        return verb(assignment, context)  # type: ignore[no-any-return]
    except FenceLost:
        raise
    except Exception as error:
        return broke(assignment, error)


def _cancel_or_poll(executor: Executor) -> Callable[[Assignment, Context], Outcome]:
    """Ask after the work; first ask for its end where a cancellation was requested."""

    def run(assignment: Assignment, context: Context) -> Outcome:
        if assignment.cancel_requested:
            ended = executor.cancel(assignment, context)
            if ended.handle is None:
                return ended
        return executor.poll(assignment, context)

    return run


def broke(assignment: Assignment, error: BaseException) -> Outcome | ProbeAnswer:
    """Our own fault: nothing is proved, so whatever was possible stays possible."""
    message = f"{type(error).__name__}: {error}"
    if assignment.kind is AttemptKind.PROBE:
        return ProbeAnswer(finding=ProbeFinding.UNKNOWN, message=message)
    return Outcome.ended(
        Cause.INTERNAL, Meaning.UNKNOWN, message, error_type=type(error).__qualname__
    )


def stored_of(result: Result | None) -> strictjson.Stored | None:
    """A result as the ledger can keep it; never fails (security, section 2, rule 7)."""
    if result is None:
        return None
    return strictjson.storable(
        result.body,
        result.media_type,
        truncated=result.truncated,
        full_sha256=result.full_sha256,
        full_size_bytes=result.full_size_bytes,
    )


def settlement_of(claim: Claim, outcome: Outcome) -> Settlement | None:
    """The settlement of a success, or None for every other outcome.

    A success whose body could not be read has happened all the same (semantics, section 5).
    """
    reads = claim.policy.recovery_class is RecoveryClass.READ_ONLY
    unreadable = outcome.cause is Cause.RESULT_UNREADABLE and not reads
    if outcome.handle is not None or (outcome.cause is not None and not unreadable):
        return None
    result = outcome.result or Result(body=b"null")
    stored = stored_of(result)
    assert stored is not None  # noqa: S101 storable never refuses a result
    return Settlement(
        claim=claim,
        stored=stored,
        media_type=result.media_type,
        changed_nothing=outcome.changed_nothing,
        evidence={"incomplete": True} if unreadable else {},
    )


def handle_to_store(handle: Handle) -> HandleToStore:
    """The contract's handle as the ledger's verb takes it."""
    return HandleToStore(
        value=handle.value,
        kind=handle.kind,
        endpoint=handle.endpoint,
        poll_after_s=handle.poll_after_s,
        expires_in_s=handle.expires_in_s,
    )


@cache
def _recovery() -> Any:
    return import_module(settings.RECOVERY_REPORTS)


def report(
    claim: Claim,
    outcome: Outcome | ProbeAnswer,
    *,
    proof: ProofOfDeath = ProofOfDeath.REPORTED,
) -> None:
    """Put one outcome to the ledger; what comes too late is kept as evidence."""
    try:
        _report(claim, outcome, proof)
    except errors.FenceLost:
        file_late(claim, outcome)


def _report(claim: Claim, outcome: Outcome | ProbeAnswer, proof: ProofOfDeath) -> None:
    if isinstance(outcome, ProbeAnswer):
        _recovery().probed(
            claim=claim,
            finding=outcome.finding,
            message=outcome.message,
            stored=stored_of(outcome.result),
            media_type=outcome.result.media_type if outcome.result else "",
            handle=handle_to_store(outcome.handle) if outcome.handle else None,
            effects=effects_of(outcome),
        )
        return
    if outcome.handle is not None and outcome.cause is None:
        handles.park(
            call_id=claim.call_id, fence=claim.fence, handle=handle_to_store(outcome.handle)
        )
        return
    settlement = settlement_of(claim, outcome)
    if settlement is not None:
        settlements.settle([settlement])
        return
    _recovery().ended(
        claim=claim,
        cause=outcome.cause or Cause.INTERNAL,
        means=outcome.means or Meaning.UNKNOWN,
        message=outcome.message,
        error_type=outcome.error_type,
        retry_after_s=outcome.retry_after_s,
        stored=stored_of(outcome.result),
        media_type=outcome.result.media_type if outcome.result else "",
        proof=proof,
    )


def effects_of(answer: ProbeAnswer) -> int:
    """How many effects of this call the outside shows, where the probe counted them; else 1."""
    counted = answer.evidence.get("effects", 1)
    return counted if isinstance(counted, int) else 1


def file_late(claim: Claim, outcome: Outcome | ProbeAnswer) -> None:
    """Keep the report of an attempt that lost its fence."""
    if isinstance(outcome, ProbeAnswer):
        settlements.file_late_answer(
            claim=claim,
            finding=outcome.finding,
            stored=stored_of(outcome.result) or strictjson.storable({"finding": outcome.finding}),
            media_type=outcome.result.media_type if outcome.result else "application/json",
            message=outcome.message,
        )
        return
    if claim.kind is AttemptKind.PROBE:
        return  # a probe that broke without an answer says nothing
    result = outcome.result
    stored = stored_of(result) or strictjson.storable({"message": outcome.message})
    settlements.file_late(
        claim=claim,
        stored=stored,
        media_type=result.media_type if result else "application/json",
        cause=outcome.cause,
        is_result=outcome.handle is None,  # "parked" says that there is none yet
    )
