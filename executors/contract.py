"""What every executor receives and what it reports. Executors report facts; recovery decides.

An executor is given an `Assignment` (what was claimed) and a `Context` (its line to the
ledger) and returns one `Outcome`. It never decides to repeat, never writes to the ledger,
and never touches the outside before `Context.cross()` has returned, unless its tool only
reads. Whatever it raises is turned into an outcome by `executors/runner.py`.

This module imports neither Django nor the database, so tools can be tested alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from ledger.vocabulary import (
    AttemptKind,
    Boundary,
    Cause,
    Instruction,
    Meaning,
    ProbeFinding,
    RecoveryClass,
)

JSON = Any  # a strict JSON value: None, bool, int, float, str, list or dict of the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """The outside identifier by which a long job is found again.

    `kind` is `http`, `subprocess`, `cloud` or `mcp_task`; `value` may be a bearer secret and
    is never shown. Seconds are counted from the moment the handle is stored.
    """

    value: str
    kind: str = "http"
    endpoint: str = ""
    poll_after_s: float | None = None
    expires_in_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One claimed attempt: all that an executor may know of the call.

    `marker` is derived from the call id and travels with the effect, so that a probe can
    find it again. `cursor` is the last one an earlier attempt reported with a heartbeat.
    `traceparent` (W3C Trace Context) is this attempt's own, to be sent on; None without a trace.
    `lease_s`, `start_to_close_s` and `schedule_to_close_s` are durations from the claim;
    `attempts_left` is how many the call's own budget has after this one.
    """

    call_id: UUID
    fence: int
    kind: AttemptKind
    workspace_id: UUID
    tool: str
    tool_version: int
    executor: str
    executor_config: Mapping[str, Any]
    recovery_class: RecoveryClass
    boundary: Boundary
    arguments: dict[str, Any]
    idempotency_key: str
    marker: str
    cursor: JSON = None
    handle: Handle | None = None
    lease_s: float = 15.0
    start_to_close_s: float = 30.0
    schedule_to_close_s: float = 240.0
    attempts_left: int = 0
    crossed: bool = False
    cancel_requested: bool = False
    traceparent: str | None = None

    @property
    def time_s(self) -> float:
        """Seconds this attempt may take: for a run the smaller of both limits (R36)."""
        if self.kind is not AttemptKind.RUN:
            return self.start_to_close_s
        return max(0.0, min(self.start_to_close_s, self.schedule_to_close_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool brought: the bytes as received, and what they are.

    `truncated` says that `body` was cut at the cap; `full_sha256` and `full_size_bytes` then
    describe all of it.
    """

    body: bytes
    media_type: str = "application/json"
    truncated: bool = False
    full_sha256: str = ""
    full_size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one attempt.

    Exactly one of three shapes: a success (`result`, no `cause`), a parked job (`handle`,
    no `cause`), or a `cause` with what it `means` for the effect. Use the constructors.
    """

    result: Result | None = None
    handle: Handle | None = None
    cause: Cause | None = None
    means: Meaning | None = None
    message: str = ""
    error_type: str = ""
    retry_after_s: float | None = None
    changed_nothing: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def succeeded(cls, result: Result, *, changed_nothing: bool = False) -> "Outcome":
        """The tool ended well; `changed_nothing` when it says itself that it had no effect."""
        return cls(result=result, means=Meaning.KNOWN, changed_nothing=changed_nothing)

    @classmethod
    def parked(cls, handle: Handle) -> "Outcome":
        """The work runs elsewhere; for a poll: it is not done yet, ask again later."""
        return cls(handle=handle)

    @classmethod
    def ended(
        cls,
        cause: Cause,
        means: Meaning,
        message: str,
        *,
        error_type: str = "",
        retry_after_s: float | None = None,
        result: Result | None = None,
        evidence: Mapping[str, Any] | None = None,
    ) -> "Outcome":
        """Anything else. Say `Meaning.UNKNOWN` whenever it is not proved (semantics, 5.1)."""
        return cls(
            cause=cause,
            means=means,
            message=message,
            error_type=error_type,
            retry_after_s=retry_after_s,
            result=result,
            evidence=evidence or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
    """What a probe found outside. A negative counts only if the probe is authoritative.

    `handle` is that of work found under way: the call is resumed by it. A probe that can count
    says in `evidence["effects"]` how many effects of this one call it found.
    """

    finding: ProbeFinding
    message: str = ""
    result: Result | None = None
    handle: Handle | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


class FenceLost(Exception):
    """This attempt no longer holds the call. Stop, send nothing, report what you have."""


class Context(Protocol):
    """A tool's line to the ledger while its attempt runs. Every method may raise FenceLost."""

    @property
    def assignment(self) -> Assignment: ...

    def remaining_s(self) -> float:
        """Seconds left of `assignment.time_s`, never below 0 (R36)."""
        ...

    def cross(self) -> None:
        """Return once it is committed that an effect may begin; calling it again is free."""
        ...

    def heartbeat(self, *, cursor: JSON = None, partial: bytes | None = None) -> Instruction:
        """Renew the lease; store a cursor for the next attempt and append partial output."""
        ...

    def store_handle(self, handle: Handle) -> None:
        """Return once the handle is committed: before any wait (R72)."""
        ...


class Executor(Protocol):
    """One kind of executor: a folder below `executors/`, passing one conformance suite."""

    def run(self, assignment: Assignment, context: Context) -> Outcome:
        """Do the tool's work once."""
        ...

    def poll(self, assignment: Assignment, context: Context) -> Outcome:
        """Ask after `assignment.handle`: `parked`, a success, or how it ended."""
        ...

    def probe(self, assignment: Assignment, context: Context) -> ProbeAnswer:
        """Ask the outside whether the effect of this call happened. Only reads."""
        ...

    def cancel(self, assignment: Assignment, context: Context) -> Outcome:
        """Ask the outside to end the job behind the handle; a request, never a proof by itself."""
        ...
