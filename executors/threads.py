"""The pool for repeatable I/O: reads, polls and probes, many at a time in one process.

One engine per queue. It claims as many as it has free slots, in one commit; the attempts run in
threads; what they bring is settled in groups. A pulse of its own holds the worker's lock and
renews the leases of all attempts in one statement. Nothing here crosses a boundary, so an
attempt that is lost is simply made again.
"""

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from executors import drain, runner
from executors.contract import JSON, Assignment, FenceLost, Handle, Outcome, ProbeAnswer
from ledger import attempts, claims, dispatch, errors, faults, handles, settlements, workers
from ledger.claims import Claim
from ledger.groups import Group
from ledger.transactions import may_be_repeated
from ledger.vocabulary import AttemptKind, FenceKind, Instruction
from ledger.workers import Holder

SLOTS = {"reads": 32, "control": 8}
CLAIM_FOR_S = 20.0
LOOK_AGAIN_S = 0.5
LINGER_S = 2.0
SLICE_S = 0.25
PULSE_S = 1.0
LEAKED_MAX = 3

log = logging.getLogger(__name__)


class Engine:
    """The running attempts of one queue in this process."""

    def __init__(self, queue: str, slots: int) -> None:
        self.queue = queue
        self.slots = slots
        self.free = threading.Semaphore(slots)
        self.claiming = threading.Lock()
        self.asked = threading.Event()
        self.running: dict[UUID, Claim] = {}
        self.threads = ThreadPoolExecutor(slots * LEAKED_MAX, thread_name_prefix=queue)
        self.reports: Group[tuple[Claim, Any], None] = Group(_report_many, name=f"{queue}-reports")
        self.leaked = 0
        self.unreported: deque[tuple[Claim, Outcome | ProbeAnswer]] = deque()
        self._registered = threading.Event()
        self._holder: Holder | None = None
        threading.Thread(target=self._pulse, name=f"{queue}-pulse", daemon=True).start()

    @property
    def holder(self) -> Holder:
        """This engine's row and lock, which its pulse holds."""
        if not self._registered.wait(timeout=10) or self._holder is None:
            raise InterfaceError("The worker could not be registered: the ledger is away.")
        return self._holder

    def run_due(self) -> None:
        """Claim and start until nothing is left, stay awake a little; at most twenty seconds."""
        dispatch.answered(self.queue)
        self.asked.set()
        if drain.is_on():
            return
        if not self.claiming.acquire(blocking=False):
            return  # another thread of this process is awake and looks again
        try:
            # A server that restarted while we were idle must not cost this ring.
            connection.close_if_unusable_or_obsolete()
            self._stay_awake(time.monotonic() + CLAIM_FOR_S)
            self._claim_all()
        except (DatabaseError, InterfaceError) as error:
            log.warning("engine.database_away error=%s", type(error).__name__)
            connection.close()
            time.sleep(LOOK_AGAIN_S)
            self.asked.set()
        finally:
            self.claiming.release()
        if self.asked.is_set():
            dispatch.ring([self.queue], again=True)

    def _stay_awake(self, until: float) -> None:
        with dispatch.listening(self.queue) as heard:
            while time.monotonic() < until and not drain.is_on():
                self._claim_all()
                if not self._rung(heard, min(until, time.monotonic() + LINGER_S)):
                    return
            self.asked.set()

    def _rung(self, heard: Callable[[float], bool], until: float) -> bool:
        while (left := until - time.monotonic()) > 0 and not drain.is_on():
            if heard(min(left, SLICE_S)) or self.asked.is_set():
                return True
        return False

    def _claim_all(self) -> None:
        self.asked.clear()
        while not drain.is_on() and self._claim_some():
            pass

    def _claim_some(self) -> bool:
        """Fill the free slots; False when less was due. Waits for a slot if there is none."""
        slots = self._slots()
        won: list[Claim] = []
        try:
            won = claims.claim(queue=self.queue, holder=self.holder, limit=slots)
        finally:
            if slots > len(won):
                self.free.release(slots - len(won))
        for claim in won:
            self.running[claim.attempt_id] = claim
            self.threads.submit(self._run, claim)
        return len(won) == slots

    def _slots(self) -> int:
        self.free.acquire()
        won = 1
        while won < self.slots and self.free.acquire(blocking=False):
            won += 1
        return won

    def _run(self, claim: Claim) -> None:
        faults.point("before_start", claim.call_id, claim.tool)
        assignment = runner.assignment_of(claim)
        context = ThreadContext(self, claim, assignment)
        try:
            outcome: Outcome | ProbeAnswer = runner.execute(assignment, context)
        except FenceLost:
            self._freed(claim)
            return
        except BaseException as error:
            outcome = runner.broke(assignment, error)
        self._report(claim, outcome)

    def _report(self, claim: Claim, outcome: Outcome | ProbeAnswer) -> None:
        faults.point("before_result_write", claim.call_id, claim.tool)
        self.reports.submit((claim, outcome)).add_done_callback(
            lambda done: self._done(claim, outcome, done)
        )

    def _done(self, claim: Claim, outcome: Outcome | ProbeAnswer, done: "Future[None]") -> None:
        error = done.exception()
        if isinstance(error, DatabaseError | InterfaceError) and may_be_repeated(error):
            # The ledger is away: the pulse reports it when it is back, as evidence if need be.
            self.unreported.append((claim, outcome))
            return
        if error is not None:
            log.error("attempt.unreported call=%s", claim.call_id, exc_info=error)
        faults.point("after_write", claim.call_id, claim.tool)
        self._freed(claim)

    def _freed(self, claim: Claim) -> None:
        if self.running.pop(claim.attempt_id, None) is not None:
            self.free.release()
        else:
            self.leaked -= 1

    def drain(self) -> None:
        """Let what runs end within the grace, give back the rest, and end this worker."""
        until = time.monotonic() + drain.GRACE_S
        while self.running and time.monotonic() < until:
            time.sleep(0.1)
        for claim in list(self.running.values()):
            with contextlib.suppress(errors.LedgerError, DatabaseError, InterfaceError):
                self.ask(lambda held=claim: _give_back(held))

    def ask(self, verb: Any) -> Any:
        """Run a verb of the ledger on the reporting thread's connection, in turn."""
        return self.reports.submit((None, verb)).result()  # type: ignore[arg-type]

    def _pulse(self) -> None:
        """Hold the lock, renew the leases, let go of attempts that lost their fence."""
        while True:
            try:
                if self._holder is None:
                    self._holder = workers.register(
                        name=f"{self.queue}-{os.getpid()}",
                        queues=[self.queue],
                        slots=self.slots,
                        fence_kind=FenceKind.NONE,
                    )
                    self._registered.set()
                workers.seen(self._holder)
                self._renew_all()
                while self.unreported:
                    self._report(*self.unreported.popleft())
            except (DatabaseError, InterfaceError) as error:
                log.warning("engine.database_away error=%s", type(error).__name__)
                connection.close()
            time.sleep(PULSE_S)

    def _renew_all(self) -> None:
        held = list(self.running)
        if not held:
            return
        for lost in set(held) - attempts.renew(attempt_ids=held):
            # Its thread may hang for ever; the slot is given on, a bounded number of times.
            if lost in self.running and self._is_over(lost):
                self.running.pop(lost)
                self.leaked += 1
                self.free.release()
        if self.leaked > self.slots * (LEAKED_MAX - 1):
            log.error("engine.leaked threads=%s: the worker ends and is started anew", self.leaked)
            os._exit(70)

    def _is_over(self, attempt_id: UUID) -> bool:
        """Whether the ledger has ended the attempt while its thread still runs."""
        time.sleep(0.05)  # its report may be in the group that is just being committed
        return attempt_id in self.running


def _give_back(claim: Claim) -> None:
    """Nothing here crosses, so a run begins anew elsewhere; polls and probes do so anyway."""
    if claim.kind is AttemptKind.RUN:
        attempts.release(
            call_id=claim.call_id, fence=claim.fence, grounds="The worker was told to stop."
        )


def _report_many(rows: Any) -> list[None | Exception]:
    """Settle the successes in one commit, report every other outcome by itself."""
    answers: list[Any] = [None] * len(rows)
    settling = []
    for index, (claim, outcome) in enumerate(rows):
        settlement = (
            runner.settlement_of(claim, outcome)
            if claim is not None and isinstance(outcome, Outcome)
            else None
        )
        if settlement is not None:
            settling.append(settlement)
        else:
            answers[index] = _one(claim, outcome)
    if settling:
        settlements.settle(settling)  # what comes too late is kept as evidence within
    return answers


def _one(claim: Claim | None, outcome: Any) -> Any:
    try:
        return outcome() if claim is None else runner.report(claim, outcome)
    except (errors.LedgerError, FenceLost) as error:
        return error


class ThreadContext:
    """A thread's line to the ledger, through the engine's reporting thread."""

    def __init__(self, engine: Engine, claim: Claim, assignment: Assignment) -> None:
        self._engine = engine
        self._claim = claim
        self._assignment = assignment
        self._ends_s = time.monotonic() + assignment.time_s

    @property
    def assignment(self) -> Assignment:
        return self._assignment

    def remaining_s(self) -> float:
        return max(0.0, self._ends_s - time.monotonic())

    def cross(self) -> None:
        raise PermissionError(
            "A read, a poll or a probe asked to cross the boundary. Nothing was crossed. "
            "Declare the tool's recovery class, and its effect runs under the self-fence."
        )

    def heartbeat(self, *, cursor: JSON = None, partial: bytes | None = None) -> Instruction:
        try:
            answer = self._ask(
                lambda: attempts.heartbeat(
                    call_id=self._claim.call_id,
                    fence=self._claim.fence,
                    cursor=cursor,
                    partial=partial,
                )
            )
        except (DatabaseError, InterfaceError):
            return Instruction.GO_ON  # a ledger that is away takes nothing from the lease
        return Instruction(answer[0])

    def store_handle(self, handle: Handle) -> None:
        self._ask(
            lambda: handles.store_handle(
                call_id=self._claim.call_id,
                fence=self._claim.fence,
                handle=runner.handle_to_store(handle),
            )
        )

    def _ask(self, verb: Any) -> Any:
        try:
            return self._engine.ask(verb)
        except errors.FenceLost as lost:
            raise FenceLost(str(lost)) from lost


_engines: dict[str, Engine] = {}
_making = threading.Lock()


def engine_of(queue: str) -> Engine:
    """The engine of a queue in this process."""
    with _making:
        if queue not in _engines:
            _engines[queue] = Engine(queue, SLOTS[queue])
        return _engines[queue]


def begin(queues: Iterable[str]) -> None:
    """Start the engines of those queues that run in threads, before the first ring."""
    runner.executors()
    for queue in queues:
        if queue in SLOTS:
            engine_of(queue)


def engines() -> list[Engine]:
    """The engines that this process has begun."""
    return list(_engines.values())
