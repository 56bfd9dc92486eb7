"""What a Python tool returns or raises becomes exactly one outcome."""

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from executors.contract import (
    Assignment,
    FenceLost,
    Handle,
    Outcome,
    ProbeAnswer,
    Result,
)
from executors.python import (
    NotBegun,
    PythonExecutor,
    PythonTool,
    Refused,
    ToolFailed,
    Unproven,
    Vanished,
    registry,
    tool,
)
from ledger.vocabulary import (
    AttemptKind,
    Boundary,
    Cause,
    Meaning,
    ProbeFinding,
    RecoveryClass,
)
from tests.executors.recording_context import RecordingContext, an_assignment

HANDLE = Handle(value="render-7", poll_after_s=1.0)


def ran(made: PythonTool, **changes: Any) -> tuple[Outcome, RecordingContext]:
    settings = {"tool": made.name, "boundary": made.boundary, **changes}
    context = RecordingContext(an_assignment(**settings))
    return executor_of(made).run(context.assignment, context), context


def executor_of(made: PythonTool) -> PythonExecutor:
    return PythonExecutor({made.name: made})


def a_tool(body: Callable[..., Any], *, boundary: str = "at_start", **more: Any) -> PythonTool:
    return tool("plain.tool", boundary=boundary, **more)(body)


def raising(error: BaseException, *, cross: bool = False) -> Callable[[Any], None]:
    def body(context: Any) -> None:
        if cross:
            context.cross()
        raise error

    return body


# What it returns


@pytest.mark.parametrize("value", [None, True, 7, 1.5, "ä", [1, {"a": None}], {"ok": "yes"}])
def test_a_json_value_becomes_a_json_result(value: object) -> None:
    outcome, _ = ran(a_tool(lambda context: value))
    assert outcome.result is not None
    assert outcome.result.media_type == "application/json"
    assert json.loads(outcome.result.body) == value
    assert outcome.means is Meaning.KNOWN


def test_bytes_are_handed_on_as_they_are() -> None:
    outcome, _ = ran(a_tool(lambda context: b"\x00\xff"))
    assert outcome.result == Result(body=b"\x00\xff", media_type="application/octet-stream")


def test_a_result_and_an_outcome_pass_through() -> None:
    result = Result(body=b"<x/>", media_type="text/xml")
    assert ran(a_tool(lambda context: result))[0].result is result
    stated = Outcome.ended(Cause.CONFLICT, Meaning.REFUSED, "There already.")
    assert ran(a_tool(lambda context: stated))[0] is stated


def test_a_tool_reads_the_trace_of_its_attempt_from_its_context() -> None:
    made = a_tool(lambda context: context.assignment.traceparent)
    sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    bodies = [ran(made, traceparent=each)[0].result.body for each in (sent, None)]
    assert [json.loads(each) for each in bodies] == [sent, None]


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def deep() -> list:
    value: list = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [{1, 2}, float("nan"), object(), "\ud800", Unshowable(), {b"k": 1}, deep()],
    ids=["set", "nan", "object", "surrogate", "unshowable", "bytes-key", "deep"],
)
def test_a_value_that_is_not_json_is_still_a_success(value: object) -> None:
    outcome, _ = ran(a_tool(lambda context: value))
    assert outcome.cause is None
    assert outcome.result is not None
    assert outcome.result.media_type == "text/plain"
    assert outcome.result.body.decode()


# Where it crosses


def test_a_tool_crosses_before_its_body_is_entered() -> None:
    seen: list[list[str]] = []
    context = RecordingContext(an_assignment(tool="plain.tool"))
    made = a_tool(lambda _: seen.append(list(context.verbs)))
    executor_of(made).run(context.assignment, context)
    assert seen == [["cross"]]


def test_a_tool_that_only_reads_never_crosses() -> None:
    _, context = ran(a_tool(lambda _: {}), recovery_class=RecoveryClass.READ_ONLY)
    assert context.calls == []


def test_a_marked_tool_crosses_itself() -> None:
    outcome, context = ran(a_tool(lambda line: line.cross(), boundary="marked"))
    assert context.verbs == ["cross"]
    assert not outcome.changed_nothing


def test_a_marked_tool_that_never_crossed_has_changed_nothing() -> None:
    outcome, context = ran(a_tool(lambda _: {}, boundary="marked"))
    assert context.calls == []
    assert outcome.changed_nothing


@pytest.mark.parametrize(("declared", "assigned"), [("at_start", "marked"), ("marked", "at_start")])
def test_the_earlier_of_two_boundaries_holds(declared: str, assigned: str) -> None:
    _, context = ran(a_tool(lambda _: {}, boundary=declared), boundary=Boundary(assigned))
    assert context.verbs == ["cross"]


def test_a_lost_fence_at_the_boundary_keeps_the_body_from_running() -> None:
    entered = threading.Event()
    made = a_tool(lambda _: entered.set())
    context = RecordingContext(an_assignment(tool=made.name), lose_fence_at="cross")
    with pytest.raises(FenceLost):
        executor_of(made).run(context.assignment, context)
    assert not entered.is_set()


def test_a_fence_lost_inside_the_body_goes_up() -> None:
    made = a_tool(lambda line: line.heartbeat())
    context = RecordingContext(an_assignment(tool=made.name), lose_fence_at="heartbeat")
    with pytest.raises(FenceLost):
        executor_of(made).run(context.assignment, context)


# What it raises


def test_an_error_before_a_marked_boundary_proves_that_nothing_began() -> None:
    outcome, _ = ran(a_tool(raising(KeyError("x")), boundary="marked"))
    assert (outcome.cause, outcome.means) == (Cause.INTERNAL, Meaning.NOT_BEGUN)


def test_an_error_after_a_marked_boundary_proves_nothing() -> None:
    outcome, _ = ran(a_tool(raising(KeyError("x"), cross=True), boundary="marked"))
    assert (outcome.cause, outcome.means) == (Cause.INTERNAL, Meaning.UNKNOWN)


def test_an_error_after_crossing_at_start_proves_nothing() -> None:
    outcome, _ = ran(a_tool(raising(ValueError("x"))))
    assert (outcome.cause, outcome.means) == (Cause.INTERNAL, Meaning.UNKNOWN)


class CrossingAnswerLost(RecordingContext):
    """The crossing is committed and its answer lost on the way back."""

    def cross(self) -> None:
        super().cross()
        raise ConnectionResetError("the database went away")


def test_a_lost_answer_to_the_crossing_rules_out_not_begun() -> None:
    made = a_tool(lambda line: line.cross(), boundary="marked")
    assignment = an_assignment(tool=made.name, boundary=Boundary.MARKED)
    outcome = executor_of(made).run(assignment, CrossingAnswerLost(assignment))
    assert (outcome.cause, outcome.means) == (Cause.CONNECTION_LOST, Meaning.UNKNOWN)


@pytest.mark.parametrize(
    ("error", "cause", "means"),
    [
        (NotBegun("not sent"), Cause.NOT_BEGUN_REPORTED, Meaning.NOT_BEGUN),
        (NotBegun("refused", cause=Cause.CONNECT_FAILED), Cause.CONNECT_FAILED, Meaning.NOT_BEGUN),
        (Refused(Cause.PERMISSION, "no"), Cause.PERMISSION, Meaning.REFUSED),
        (ToolFailed("bad luck"), Cause.TOOL_ERROR, Meaning.KNOWN),
        (Unproven(Cause.SERVER_ERROR, "?"), Cause.SERVER_ERROR, Meaning.UNKNOWN),
        (Vanished("who?"), Cause.VANISHED, Meaning.UNKNOWN),
        (ConnectionRefusedError(), Cause.CONNECTION_LOST, Meaning.UNKNOWN),
        (BrokenPipeError(), Cause.CONNECTION_LOST, Meaning.UNKNOWN),
        (TimeoutError(), Cause.HANG, Meaning.UNKNOWN),
        (MemoryError(), Cause.RESOURCE_KILLED, Meaning.UNKNOWN),
        (PermissionError(), Cause.INTERNAL, Meaning.UNKNOWN),
        (SystemExit(3), Cause.INTERNAL, Meaning.UNKNOWN),
    ],
    ids=lambda value: getattr(value, "value", None) or type(value).__name__,
)
def test_each_error_says_what_it_proves(error: BaseException, cause: Cause, means: Meaning) -> None:
    outcome, _ = ran(a_tool(raising(error)))
    assert (outcome.cause, outcome.means) == (cause, means)


@pytest.mark.parametrize("error", [ConnectionRefusedError(), socket.gaierror()])
def test_a_connection_that_fails_before_the_boundary_never_began(error: OSError) -> None:
    outcome, _ = ran(a_tool(raising(error), boundary="marked"))
    assert (outcome.cause, outcome.means) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)


def test_a_refusal_carries_the_wait_it_named() -> None:
    error = Refused(Cause.RATE_LIMITED, "later", retry_after_s=7.5)
    assert ran(a_tool(raising(error)))[0].retry_after_s == 7.5


def test_a_tools_own_error_keeps_its_result() -> None:
    outcome, _ = ran(a_tool(raising(ToolFailed("half done", {"done": 3}))))
    assert outcome.result is not None
    assert json.loads(outcome.result.body) == {"done": 3}


def test_an_exception_is_kept_with_type_module_bases_and_message() -> None:
    outcome, _ = ran(a_tool(raising(FileNotFoundError("gone"))))
    assert outcome.error_type == "builtins.FileNotFoundError"
    kept = outcome.evidence["exception"]
    assert kept["message"] == "gone"
    assert kept["bases"][0] == "builtins.OSError"


def test_an_exception_whose_text_raises_is_still_an_outcome() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    outcome, _ = ran(a_tool(raising(Mute())))
    assert outcome.message.endswith("Mute")


# What it is not given to run


def test_an_unknown_tool_ran_nothing() -> None:
    context = RecordingContext(an_assignment(tool="plain.gone"))
    outcome = PythonExecutor({}).run(context.assignment, context)
    assert (outcome.cause, outcome.means) == (Cause.TOOL_UNKNOWN, Meaning.NOT_BEGUN)
    assert context.calls == []


def test_an_unknown_tool_is_answered_with_the_nearest_name() -> None:
    registry.load(["sandbox.tools"])
    context = RecordingContext(an_assignment(tool="sandbox.lokup"))
    outcome = PythonExecutor().run(context.assignment, context)
    assert "'sandbox.lookup'" in outcome.message


def test_another_version_is_another_tool() -> None:
    outcome, context = ran(a_tool(lambda _: {}), tool_version=2)
    assert outcome.cause is Cause.TOOL_UNKNOWN
    assert context.calls == []


@pytest.mark.parametrize("arguments", [{"surplus": 1}, {"context": 1}])
def test_arguments_that_do_not_fit_are_refused_before_the_boundary(arguments: dict) -> None:
    outcome, context = ran(a_tool(lambda context: {}), arguments=arguments)
    assert (outcome.cause, outcome.means) == (Cause.VALIDATION, Meaning.REFUSED)
    assert context.calls == []


# Handles, polls, cancels and probes


@pytest.mark.parametrize("value", [HANDLE, Outcome.parked(HANDLE)])
def test_a_handle_is_stored_before_the_call_is_parked(value: object) -> None:
    outcome, context = ran(a_tool(lambda _: value))
    assert outcome.handle == HANDLE
    assert context.handles == [HANDLE]


def test_a_handle_the_tool_stored_itself_is_not_stored_twice() -> None:
    def body(line: Any) -> Outcome:
        line.store_handle(HANDLE)
        return Outcome.parked(HANDLE)

    assert ran(a_tool(body))[1].handles == [HANDLE]


def a_parked(made: PythonTool) -> tuple[Assignment, RecordingContext]:
    assignment = an_assignment(tool=made.name, kind=AttemptKind.POLL, handle=HANDLE, crossed=True)
    return assignment, RecordingContext(assignment)


def test_a_poll_without_an_answer_parks_the_call_again() -> None:
    made = a_tool(lambda _: HANDLE)
    made.poll(lambda context, handle: None)
    outcome = executor_of(made).poll(*a_parked(made))
    assert outcome.handle == HANDLE


def test_a_poll_that_brings_a_value_is_a_success() -> None:
    made = a_tool(lambda _: HANDLE)
    made.poll(lambda context, handle: {"handle": handle.value})
    outcome = executor_of(made).poll(*a_parked(made))
    assert outcome.result is not None
    assert not outcome.changed_nothing


def test_a_poll_that_breaks_says_nothing_of_the_work() -> None:
    made = a_tool(lambda _: HANDLE)
    made.poll(lambda context, handle: raising(ConnectionRefusedError())(context))
    outcome = executor_of(made).poll(*a_parked(made))
    assert outcome.means is Meaning.UNKNOWN


def test_a_tool_without_a_poll_says_that_nobody_was_asked() -> None:
    made = a_tool(lambda _: HANDLE)
    outcome = executor_of(made).poll(*a_parked(made))
    assert outcome.means is Meaning.UNKNOWN
    assert "has no poll function" in outcome.message


def test_a_cancel_is_a_request_and_leaves_the_call_parked() -> None:
    made = a_tool(lambda _: HANDLE)
    asked: list[str] = []
    made.cancel(lambda context, handle: asked.append(handle.value))
    outcome = executor_of(made).cancel(*a_parked(made))
    assert asked == ["render-7"]
    assert outcome.handle == HANDLE


def test_a_probe_answers_with_what_it_found() -> None:
    made = a_tool(lambda _, **arguments: {})
    made.probe(lambda context, to: ProbeAnswer(finding=ProbeFinding.HAPPENED, message=to))
    context = RecordingContext(an_assignment(tool=made.name, arguments={"to": "ada"}))
    answer = executor_of(made).probe(context.assignment, context)
    assert (answer.finding, answer.message) == (ProbeFinding.HAPPENED, "ada")


@pytest.mark.parametrize(
    "probe",
    [raising(RuntimeError("down")), raising(RuntimeError(), cross=True)],
    ids=["broken", "wants-to-cross"],
)
def test_a_probe_that_breaks_or_would_cross_found_nothing(probe: Callable) -> None:
    made = a_tool(lambda _: {})
    made.probe(probe)
    context = RecordingContext(an_assignment(tool=made.name))
    answer = executor_of(made).probe(context.assignment, context)
    assert answer.finding is ProbeFinding.UNKNOWN
    assert context.calls == []


def test_a_fence_lost_inside_a_probe_goes_up() -> None:
    made = a_tool(lambda _: {})
    made.probe(lambda context: context.heartbeat())
    context = RecordingContext(an_assignment(tool=made.name), lose_fence_at="heartbeat")
    with pytest.raises(FenceLost):
        executor_of(made).probe(context.assignment, context)


def test_many_reads_run_at_a_time_without_mixing() -> None:
    made = a_tool(lambda line, n: n)
    executor = executor_of(made)

    def one(n: int) -> bytes:
        context = RecordingContext(
            an_assignment(
                tool=made.name, arguments={"n": n}, recovery_class=RecoveryClass.READ_ONLY
            )
        )
        outcome = executor.run(context.assignment, context)
        assert outcome.result is not None
        return outcome.result.body

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(200))) == [str(n).encode() for n in range(200)]
