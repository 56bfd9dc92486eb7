"""Commands as tools: build the sandbox, cross, let it begin, read it to its end.

What fails before `release`, or leaves the gate's byte unread, proves that nothing has begun.
After that: an exit code is a known
answer of the tool; an end by memory, by time or by order is unknown. Runs inside a tool child,
whose namespace or keeper ends whatever a command leaves behind.

Never: a shell, the worker's environment, or a wait without an end.
Source: semantics, section 5; security, section 4; reliability, rows "output of 10 GB", "slow tool".
"""

import json
import os
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from executors.command import sandbox
from executors.command.config import ArgumentRefused, CommandConfig, ConfigRefused, fill, parse
from executors.command.output import Streams
from executors.contract import Assignment, Context, Outcome, ProbeAnswer, Result
from ledger.vocabulary import Cause, Instruction, Meaning, ProbeFinding, RecoveryClass

BEAT_S = 2.0
GRACE_S = 2.0
"""Between SIGTERM and SIGKILL, taken from the attempt's own time."""

DRAIN_S = 1.0
"""How long an output is still read after the command ended: a daemon may hold it open."""

_PARTIAL_BYTES_MAX = 256 * 1024
_STDERR_TAIL_BYTES, _STDOUT_TAIL_BYTES = 8 * 1024, 8 * 1024
_PROBE_LIMIT_S = 60.0
# 128 + SIGKILL, SIGXCPU, SIGXFSZ, as a sandbox reports them; their negatives without one.
_RESOURCE_CODES = frozenset({137, 152, 153, -9, -24, -25})


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a command ended: by itself with a code, or cut for a reason of ours."""

    code: int
    cut: str = ""
    cause: Cause | None = None


class CommandExecutor:
    """Runs programs by argument list. Shapes of the configuration: `config.CommandConfig`."""

    def run(self, assignment: Assignment, context: Context) -> Outcome:
        """Run the command once. Raises FenceLost, with the command dead, when the fence is lost."""
        try:
            config = parse(assignment.executor_config)
            _require_sandbox(config, assignment)
            argv = _command_line(config.argv, config, assignment)
            cage, crossed = _begin(argv, config, assignment, context)
        except ConfigRefused as refusal:
            return Outcome.ended(Cause.INTERNAL, Meaning.NOT_BEGUN, str(refusal))
        except ArgumentRefused as refusal:
            return Outcome.ended(Cause.VALIDATION, Meaning.REFUSED, str(refusal))
        except sandbox.NotStarted as failure:
            return Outcome.ended(Cause.CONNECT_FAILED, Meaning.NOT_BEGUN, str(failure))
        try:
            return _attend(cage, config, assignment, context, crossed)
        finally:
            cage.close()

    def poll(self, assignment: Assignment, context: Context) -> Outcome:
        """A command gives no handle, so there is nothing to ask after."""
        return Outcome.ended(Cause.VANISHED, Meaning.UNKNOWN, _NO_HANDLE)

    def probe(self, assignment: Assignment, context: Context) -> ProbeAnswer:
        """Run the probe's command; its exit code is looked up in the configured answers."""
        try:
            return _probe(assignment, context)
        except (ConfigRefused, ArgumentRefused, sandbox.NotStarted) as failure:
            return ProbeAnswer(finding=ProbeFinding.UNKNOWN, message=str(failure))

    def cancel(self, assignment: Assignment, context: Context) -> Outcome:
        """A command runs only while its attempt does; nothing is left to be asked."""
        return Outcome.ended(Cause.VANISHED, Meaning.UNKNOWN, _NO_HANDLE)


_NO_HANDLE = (
    "A command has no life beyond its attempt and gives no handle. Whether its effect happened "
    "is for its probe or a person to say."
)


def _require_sandbox(config: CommandConfig, assignment: Assignment) -> None:
    """Side effects are refused at level `none` unless the configuration says otherwise."""
    careful = assignment.recovery_class is RecoveryClass.SIDE_EFFECT
    required = config.require_sandbox or ("partial" if careful else "none")
    found = sandbox.level()
    if not found.satisfies(required):
        raise sandbox.NotStarted(
            f"This command needs sandbox level {required}. {found.sentence} Nothing has begun. "
            "Install what is missing, or have an admin lower `require_sandbox`."
        )


def _command_line(argv: Any, config: CommandConfig, assignment: Assignment) -> list[str]:
    known = {"marker": assignment.marker, "idempotency_key": assignment.idempotency_key}
    filled = fill(argv, {**known, **assignment.arguments}, allow_dash=config.allow_dash)
    return [sandbox.find_program(filled[0], config), *filled[1:]]


def _begin(
    argv: list[str], config: CommandConfig, assignment: Assignment, context: Context
) -> tuple[sandbox.Cage, bool]:
    """Build, cross, release. Without a sandbox there is no gate, so the crossing comes first."""
    crosses = assignment.recovery_class is not RecoveryClass.READ_ONLY
    env = _environment(config, assignment)
    if crosses and sandbox.level().level == "none":
        context.cross()
    cage = sandbox.start(argv, config, env=env)
    try:
        if crosses:
            context.cross()
        cage.release()
    except BaseException:
        cage.close()
        raise
    return cage, crosses


def _environment(config: CommandConfig, assignment: Assignment) -> Mapping[str, str]:
    """Built from nothing: what a program needs, what the configuration allows, and our marks."""
    trace = {"TRACEPARENT": assignment.traceparent} if assignment.traceparent else {}
    own = {
        name: os.environ.get(name) if text is None else text for name, text in config.env.items()
    }
    return {
        "PATH": sandbox.SEARCH_PATH,
        "HOME": sandbox.SCRATCH,
        "LANG": "C.UTF-8",
        **{name: text for name, text in own.items() if text is not None},
        "CLEARHOUSE_MARKER": assignment.marker,
        "CLEARHOUSE_IDEMPOTENCY_KEY": assignment.idempotency_key,
        **trace,
    }


def _attend(
    cage: sandbox.Cage,
    config: CommandConfig,
    assignment: Assignment,
    context: Context,
    crossed: bool,
) -> Outcome:
    given = json.dumps(assignment.arguments, ensure_ascii=False).encode("utf-8", "surrogatepass")
    streams = _streams(cage, config, given if config.stdin == "arguments" else b"")
    ending = _read_to_the_end(cage, streams, context)
    if cage.never_began:
        return Outcome.ended(Cause.CONNECT_FAILED, Meaning.NOT_BEGUN, _not_built(streams))
    return _outcome(ending, streams, config, crossed)


def _not_built(streams: Streams) -> str:
    return f"The sandbox ended before the command: nothing has begun. {_tail(streams)}".strip()


def _streams(cage: sandbox.Cage, config: CommandConfig, given: bytes) -> Streams:
    process = cage.process
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("A command was started without its pipes.")
    return Streams(
        stdin=process.stdin, stdout=process.stdout, stderr=process.stderr,
        given=given, cap=config.limits.output_bytes,
    )  # fmt: skip


def _read_to_the_end(cage: sandbox.Cage, streams: Streams, context: Context) -> _Ending:
    """Read until the command ended, its time is over, or the ledger says stop."""
    ended = os.pidfd_open(cage.process.pid)
    streams.watch(ended)
    try:
        cut = _serve_until(ended, streams, context)
        if cut is not None:
            _end_by_force(cage, ended, streams)
    finally:
        os.close(ended)
    cage.kill()  # without a sandbox, others of its group may hold the outputs open
    code = cage.process.wait()
    _drain(streams)
    return _Ending(code) if cut is None else replace(cut, code=code)


def _serve_until(ended: int, streams: Streams, context: Context) -> _Ending | None:
    """Serve the pipes and beat; None when the command ended by itself."""
    next_beat_s = time.monotonic() + BEAT_S
    while not _is_readable(ended):
        left_s = context.remaining_s() - GRACE_S
        if left_s <= 0:
            return _Ending(0, "its time was over", Cause.HANG)
        streams.serve(min(left_s, max(0.0, next_beat_s - time.monotonic())))
        if time.monotonic() >= next_beat_s:
            next_beat_s = time.monotonic() + BEAT_S
            if _told_to_stop(streams, context):
                return _Ending(0, "the ledger asked it to stop", Cause.WORKER_LOST)
    return None


def _told_to_stop(streams: Streams, context: Context) -> bool:
    answer = context.heartbeat(partial=streams.stdout.news(_PARTIAL_BYTES_MAX))
    return answer in (Instruction.CANCEL, Instruction.STOP)


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _end_by_force(cage: sandbox.Cage, ended: int, streams: Streams) -> None:
    """SIGTERM to the group, a grace in which it may still write, then SIGKILL."""
    cage.terminate()
    until = time.monotonic() + GRACE_S / 2
    while not _is_readable(ended) and (left_s := until - time.monotonic()) > 0:
        streams.serve(left_s)
    cage.kill()


def _drain(streams: Streams) -> None:
    until = time.monotonic() + DRAIN_S
    while not streams.ended and (left_s := until - time.monotonic()) > 0:
        streams.serve(left_s)


def _outcome(ending: _Ending, streams: Streams, config: CommandConfig, crossed: bool) -> Outcome:
    if ending.cause is not None:
        message = f"The command was ended because {ending.cut}. {_tail(streams)}"
        return _unknown(ending.cause, message, streams, crossed)
    if ending.code in config.success_codes:
        return Outcome.succeeded(_result(streams, config))
    if ending.code in _RESOURCE_CODES:
        message = (
            f"The command was killed (exit {ending.code}): memory, CPU time or file size over "
            f"its limits. Its effect is not known. Raise `limits` if the work needs it."
        )
        return _unknown(Cause.RESOURCE_KILLED, message, streams, crossed)
    return Outcome.ended(
        Cause.TOOL_ERROR,
        Meaning.KNOWN,
        f"The command ended with code {ending.code}. {_tail(streams)}".strip(),
        error_type=f"exit_{ending.code}",
        result=_report(ending.code, streams),
    )


def _unknown(cause: Cause, message: str, streams: Streams, crossed: bool) -> Outcome:
    """A command that only reads never crossed; of any other the effect stays possible."""
    means = Meaning.UNKNOWN if crossed else Meaning.NOT_BEGUN
    evidence = {
        "stdout_bytes": streams.stdout.size,
        "stdout_sha256": streams.stdout.sha256,
        "stderr_tail": streams.stderr.tail(_STDERR_TAIL_BYTES),
    }
    return Outcome.ended(cause, means, message.strip(), evidence=evidence)


def _result(streams: Streams, config: CommandConfig) -> Result:
    out = streams.stdout
    return Result(
        body=bytes(out.head),
        media_type=config.media_type,
        truncated=out.truncated,
        full_sha256=out.sha256,
        full_size_bytes=out.size,
    )


def _report(code: int, streams: Streams) -> Result:
    words = {
        "exit_code": code,
        "stdout_tail": streams.stdout.tail(_STDOUT_TAIL_BYTES),
        "stderr_tail": streams.stderr.tail(_STDERR_TAIL_BYTES),
    }
    return Result(body=json.dumps(words, ensure_ascii=False).encode("utf-8"))


def _tail(streams: Streams) -> str:
    lines = streams.stderr.tail(500).strip().splitlines()
    return f"Its last line of errors: {lines[-1]}" if lines else ""


def _probe(assignment: Assignment, context: Context) -> ProbeAnswer:
    config = parse(assignment.executor_config)
    if config.probe is None:
        return ProbeAnswer(finding=ProbeFinding.UNKNOWN, message="This command has no probe.")
    argv = _command_line(config.probe.argv, config, assignment)
    cage = sandbox.start(argv, config, env=_environment(config, assignment))
    try:
        cage.release()
        streams = _streams(cage, config, b"")
        ending = _read_to_the_end(cage, streams, _Bounded(context))
        known = {} if ending.cause or cage.never_began else config.probe.exit_codes
    finally:
        cage.close()
    return ProbeAnswer(
        finding=ProbeFinding(known.get(str(ending.code), ProbeFinding.UNKNOWN)),
        message=f"The probe ended with code {ending.code}. {_tail(streams)}".strip(),
        evidence={"exit_code": ending.code, "stdout_tail": streams.stdout.tail(2048)},
    )


class _Bounded:
    """A probe's context: bounded in time, and its output is no partial output of the call."""

    def __init__(self, context: Context) -> None:
        self._context, self._until = context, time.monotonic() + _PROBE_LIMIT_S

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def remaining_s(self) -> float:
        return min(self._context.remaining_s(), max(0.0, self._until - time.monotonic()))

    def heartbeat(self, **_: Any) -> Instruction:
        return self._context.heartbeat()
