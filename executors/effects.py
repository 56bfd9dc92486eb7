"""The holder: one pool child, one attempt at a time, under the kernel self-fence.

The holder owns the line to the ledger and runs no tool code. It reads CLOCK_BOOTTIME, claims,
and launches the tool child in a process tree that is dead before the lease can end; it serves
what the tool child asks over the channel (cross, heartbeat, handle, outcome), renews the lease
and re-arms the fence after each renewal that is known to have been committed.

Whatever the answer of the ledger is late or lost: nothing is sent before a known commit, and a
lost fence kills the tree (reliability, section 5).
"""

import contextlib
import logging
import os
import time
from dataclasses import replace
from typing import Any

from django.db import DatabaseError, InterfaceError, connection

from executors import drain, fence, launcher, runner
from executors.channel import Channel, Closed, Message
from executors.command import sandbox
from executors.contract import (
    JSON,
    Assignment,
    Context,
    FenceLost,
    Handle,
    Outcome,
    ProbeAnswer,
    Result,
)
from executors.launcher import Death, LaunchFailed, Running
from ledger import attempts, claims, dispatch, errors, faults, handles, workers
from ledger.claims import Claim
from ledger.vocabulary import Cause, Instruction, Meaning, ProofOfDeath
from ledger.workers import Holder

QUEUE = "effects"
CLAIM_FOR_S = 20.0
LOOK_AGAIN_S = 0.5
LOOK_UP_S = 1.0  # a signal does not wake the line
STOP_GRACE_S = 2.0
CANCEL_GRACE_S = 10.0
REAP_LIMIT_S = 10.0

_CAUSES: dict[type[Exception], Cause] = {
    errors.PermissionMissing: Cause.PERMISSION,
    errors.CancelRequested: Cause.NOT_BEGUN_REPORTED,
}

log = logging.getLogger(__name__)
_holder: Holder | None = None
_locked_on: Any = None  # the connection that holds the lock


def this_holder() -> Holder:
    """This pool child's row, made at its first wake-up, with its lock on the present connection."""
    global _holder, _locked_on
    if _holder is None:
        _holder = workers.register(
            name=f"effects-{os.getpid()}", queues=[QUEUE], slots=1, fence_kind=fence.kind()
        )
    elif connection.connection is None or connection.connection is not _locked_on:
        workers.seen(_holder)
    _locked_on = connection.connection
    return _holder


def prepare() -> None:
    """Load the tools and find out what the host allows; children inherit both by their fork."""
    runner.executors()
    fence.namespaces()
    sandbox.level()


def begin() -> None:
    """Make this pool child a worker before its first ring; a ledger that is away is met later."""
    prepare()
    drain.listen()
    try:
        this_holder()
    except (DatabaseError, InterfaceError) as error:
        log.warning("holder.database_away error=%s", type(error).__name__)
        connection.close()


def run_due() -> None:
    """Claim and run until nothing is left, or for twenty seconds; a second ring finds nothing."""
    until = time.monotonic() + CLAIM_FOR_S
    dispatch.answered(QUEUE)
    # A server that restarted while we were idle must not cost this ring.
    connection.close_if_unusable_or_obsolete()
    try:
        workers.seen(this_holder())
        while time.monotonic() < until and not drain.is_on():
            # An attempt may have met a cut line: without its lock a holder looks dead.
            holder = this_holder()
            asked_at_s = fence.boottime_s()
            won = claims.claim(queue=QUEUE, holder=holder, limit=1)
            if not won:
                return
            if claims.are_due(QUEUE):
                dispatch.ring([QUEUE])  # for another pool child
            Hold(won[0], asked_at_s).run()
        dispatch.ring([QUEUE])  # who drains leaves the rest to another
    except (DatabaseError, InterfaceError) as error:
        # The ledger is away, or was: nothing was started without a known claim. Look again soon.
        log.warning("holder.database_away error=%s", type(error).__name__)
        connection.close()
        time.sleep(LOOK_AGAIN_S)
        dispatch.ring([QUEUE])


class Hold:
    """One attempt in the hands of its holder, from the claim to the report."""

    def __init__(self, claim: Claim, asked_at_s: float) -> None:
        self.claim = claim
        self.fence_at_s = fence.instant(asked_at_s=asked_at_s, lease_s=claim.lease_s)
        self.must_end_s = asked_at_s + claim.start_to_close_s
        self.beat_at_s = asked_at_s + claim.lease_s / 3
        self.crossed = False
        self.outcome: Outcome | None = None
        self.lost = False
        self.cancel_at_s: float | None = None
        self.gives_back = False

    def run(self) -> None:
        """Launch, serve until the end, wait for the death of everything, report."""
        self._stand_at("before_start")
        assignment = runner.assignment_of(self.claim)
        try:
            running = launcher.launch(
                lambda channel: _tool_child(channel, assignment), fence_at_s=self.fence_at_s
            )
        except LaunchFailed as error:
            self._report(Outcome.ended(Cause.INTERNAL, Meaning.NOT_BEGUN, str(error)))
            return
        try:
            self._serve(running)
            death = self._end(running)
        finally:
            running.close()
        self._report(self.outcome or self._without_word(death), death)

    def _serve(self, running: Running) -> None:
        while self.outcome is None and not self.lost:
            now_s = fence.boottime_s()
            if drain.is_on() and not self.crossed:
                self.gives_back = True
                return
            if now_s >= self.must_end_s or (self.cancel_at_s and now_s >= self.cancel_at_s):
                running.stop(STOP_GRACE_S)
                return
            if now_s >= self.beat_at_s:
                self._beat_for_busy(running)
                continue
            wait_s = min(self.beat_at_s, self.must_end_s, now_s + LOOK_UP_S) - now_s
            heard = running.receive(max(0.0, wait_s))
            if isinstance(heard, Closed):
                return
            if isinstance(heard, Message):
                running.answer(self._answer(running, heard))

    def _beat_for_busy(self, running: Running) -> None:
        """Renew the lease for a tool that is busy and says nothing."""
        try:
            self._beat(running, None, None)
        except errors.FenceLost:
            self.lost = True

    def _beat(self, running: Running, cursor: JSON, partial: bytes | None) -> Instruction:
        """Renew the lease; a ledger that is away is asked again soon.

        It takes nothing from the lease that still runs: the fence armed last goes on counting.
        """
        try:
            return self._renew(running, cursor, partial)
        except (DatabaseError, InterfaceError):
            connection.close()
            self.beat_at_s = fence.boottime_s() + min(1.0, self.claim.lease_s / 10)
            return Instruction.GO_ON

    def _renew(self, running: Running, cursor: JSON, partial: bytes | None) -> Instruction:
        asked_at_s = fence.boottime_s()
        instruction, lease_s = attempts.heartbeat(
            call_id=self.claim.call_id, fence=self.claim.fence, cursor=cursor, partial=partial
        )
        self.beat_at_s = asked_at_s + lease_s / 3
        if not running.rearm(fence.instant(asked_at_s=asked_at_s, lease_s=lease_s)):
            self.lost = True
        if instruction is Instruction.CANCEL and not self.crossed and self.cancel_at_s is None:
            self.cancel_at_s = asked_at_s + CANCEL_GRACE_S
            running.terminate()
        return instruction

    def _answer(self, running: Running, message: Message) -> dict[str, Any]:
        """Serve one request of the tool child. A fence that is lost is said, never hidden."""
        body = message.body
        try:
            match body.get("verb"):
                case "cross":
                    self._stand_at("before_crossing")
                    attempts.cross(call_id=self.claim.call_id, fence=self.claim.fence)
                    self.crossed = True
                    self._stand_at("after_crossing")
                    return {"ok": True}
                case "heartbeat":
                    said = self._beat(running, body.get("cursor"), message.payload or None)
                    return {"ok": True, "instruction": str(said)}
                case "handle":
                    self._keep(running, Handle(**body["handle"]))
                    return {"ok": True}
                case "outcome":
                    self.outcome = _outcome_from(body["outcome"], message.payload)
                    return {"ok": True}
        except errors.FenceLost as refusal:
            self.lost = True
            return {"fence_lost": str(refusal)}
        except (errors.PermissionMissing, errors.CancelRequested) as refusal:
            self.outcome = Outcome.ended(_CAUSES[type(refusal)], Meaning.NOT_BEGUN, str(refusal))
            return {"fence_lost": str(refusal)}
        except (DatabaseError, InterfaceError) as error:
            # The answer of a commit was lost: it is not known, so the tool may not act on it.
            connection.close()
            return {"fence_lost": f"The ledger did not answer: {type(error).__name__}."}
        return {"fence_lost": "The tool asked for something that the ledger does not know."}

    def _keep(self, running: Running, handle: Handle) -> None:
        """Store a handle, if need be until the fence fires: it is the way back to the work."""
        stored = runner.handle_to_store(handle)
        while True:
            try:
                handles.store_handle(
                    call_id=self.claim.call_id, fence=self.claim.fence, handle=stored
                )
                return
            except (DatabaseError, InterfaceError):
                # Storing it again finds it stored, so an answer that was lost does no harm.
                connection.close()
                if fence.boottime_s() >= running.fence_at_s:
                    raise
                time.sleep(0.2)

    def _end(self, running: Running) -> Death | None:
        """Make sure that everything below is dead before anything is reported."""
        if self.lost:
            self._hear_last_words(running)
        if self.outcome is None or self.lost:
            running.kill()
        death = running.reap(REAP_LIMIT_S if self.outcome is None else 1.0)
        if death is None:
            running.kill()
            death = running.reap(REAP_LIMIT_S)
        return death

    def _hear_last_words(self, running: Running) -> None:
        """Take the outcome that waits in the line: it is evidence now, and never dropped."""
        heard = running.receive(0)
        if isinstance(heard, Message) and heard.body.get("verb") == "outcome":
            self.outcome = _outcome_from(heard.body["outcome"], heard.payload)

    def _without_word(self, death: Death | None) -> Outcome:
        """The tool child ended without an outcome: what that proves is only whether it crossed."""
        now_s = fence.boottime_s()
        if self.cancel_at_s is not None and not self.crossed:
            return Outcome.ended(Cause.NOT_BEGUN_REPORTED, Meaning.NOT_BEGUN, "Stopped on request.")
        means = Meaning.UNKNOWN if self.crossed else Meaning.NOT_BEGUN
        if now_s >= self.must_end_s:
            return Outcome.ended(
                Cause.HANG, means, "The tool did not end within start-to-close and was killed."
            )
        killed = death is not None and death.resource_killed
        cause = Cause.RESOURCE_KILLED if killed else Cause.WORKER_LOST
        how = f"signal {death.signal}, exit code {death.exit_code}" if death else "not yet proved"
        return Outcome.ended(cause, means, f"The tool's process ended without a word ({how}).")

    def _report(self, outcome: Outcome, death: Death | None = None) -> None:
        if self.lost and self.outcome is None:
            return
        if self.gives_back:
            self._give_back()
            return
        self._stand_at("before_result_write")
        proof = ProofOfDeath.REAPED if death is not None else ProofOfDeath.REPORTED
        for wait_s in (0.2, 0.5, 1.0, 2.0, 4.0, 8.0):
            try:
                runner.report(self.claim, outcome, proof=proof)
                self._stand_at("after_write")
                return
            except (DatabaseError, InterfaceError):
                # `settle` and `ended` answer a repetition the same, so asking again is safe.
                connection.close()
                time.sleep(wait_s)
        runner.report(self.claim, outcome, proof=proof)

    def _give_back(self) -> None:
        """The tool is dead and had not crossed: another worker takes the call, at no cost."""
        with contextlib.suppress(errors.FenceLost):
            attempts.release(
                call_id=self.claim.call_id,
                fence=self.claim.fence,
                grounds="The worker was told to stop before the boundary was crossed.",
            )

    def _stand_at(self, point: str) -> None:
        faults.point(point, self.claim.call_id, self.claim.tool)


class ToolContext:
    """The tool child's line to its holder, as the contract's Context."""

    def __init__(self, channel: Channel, assignment: Assignment) -> None:
        self._channel = channel
        self._assignment = assignment
        self._ends_s = time.monotonic() + assignment.time_s
        self._crossed = False

    @property
    def assignment(self) -> Assignment:
        return self._assignment

    def remaining_s(self) -> float:
        return max(0.0, self._ends_s - time.monotonic())

    def cross(self) -> None:
        if not self._crossed:
            self._ask({"verb": "cross"})
            faults.point("before_effect", self._assignment.call_id, self._assignment.tool)
            self._crossed = True
            self._assignment = replace(self._assignment, crossed=True)

    def heartbeat(self, *, cursor: JSON = None, partial: bytes | None = None) -> Instruction:
        answer = self._ask({"verb": "heartbeat", "cursor": cursor}, partial or b"")
        return Instruction(answer["instruction"])

    def store_handle(self, handle: Handle) -> None:
        values = {name: getattr(handle, name) for name in Handle.__slots__}
        self._ask({"verb": "handle", "handle": values})

    def _ask(self, message: dict[str, Any], payload: bytes = b"") -> dict[str, Any]:
        answer = self._channel.request(message, payload)
        if "fence_lost" in answer:
            raise FenceLost(answer["fence_lost"])
        return answer


def _tool_child(channel: Channel, assignment: Assignment) -> None:
    """The body of the tool child: run the tool and hand the outcome to the holder."""
    context: Context = ToolContext(channel, assignment)
    try:
        outcome = runner.execute(assignment, context)
    except FenceLost:
        return
    faults.point("after_effect", assignment.call_id, assignment.tool)
    if isinstance(outcome, ProbeAnswer):
        raise TypeError("A probe does not run under the self-fence.")
    if outcome.handle is not None and assignment.recovery_class != "read_only":
        context.cross()  # work that runs elsewhere has begun
    described, payload = _outcome_as_message(outcome)
    channel.request({"verb": "outcome", "outcome": described}, payload)


def _outcome_as_message(outcome: Outcome) -> tuple[dict[str, Any], bytes]:
    values = {name: getattr(outcome, name) for name in Outcome.__slots__}
    result: Result | None = values.pop("result")
    payload = b""
    if result is not None:
        payload = result.body
        values["result"] = {
            name: getattr(result, name) for name in Result.__slots__ if name != "body"
        }
    if outcome.handle is not None:
        values["handle"] = {name: getattr(outcome.handle, name) for name in Handle.__slots__}
    values["evidence"] = dict(outcome.evidence)
    return values, payload


def _outcome_from(values: dict[str, Any], payload: bytes) -> Outcome:
    result = values.pop("result", None)
    handle = values.pop("handle", None)
    return Outcome(
        **values
        | {
            "cause": Cause(values["cause"]) if values["cause"] else None,
            "means": Meaning(values["means"]) if values["means"] else None,
            "result": Result(body=payload, **result) if result else None,
            "handle": Handle(**handle) if handle else None,
        }
    )
