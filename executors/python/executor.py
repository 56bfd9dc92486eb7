"""Runs a declared Python tool and reports what became of it.

Order: find the tool, check that its arguments fit, cross where the boundary says so, enter
the body, turn what it returned or raised into one `Outcome`. `FenceLost` is never turned
into an outcome: it goes up to whoever holds the fence. No state is kept between calls, so
one executor may run many reads at a time in threads.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from executors.contract import Assignment, Context, FenceLost, Handle, Outcome, ProbeAnswer
from executors.python import registry
from executors.python.declaration import PythonTool
from executors.python.line import Line, ReadingLine
from executors.python.outcomes import message_of, outcome_of, recorded
from executors.python.results import result_of
from ledger.vocabulary import Boundary, Cause, Meaning, ProbeFinding, RecoveryClass


class PythonExecutor:
    """The executor of kind `python`. `tools` defaults to what the registry has loaded."""

    def __init__(self, tools: Mapping[str, PythonTool] | None = None) -> None:
        self._tools = tools

    def run(self, assignment: Assignment, context: Context) -> Outcome:
        found = self._find(assignment)
        if found is None:
            return _tool_unknown(assignment)
        misfit = _misfit(found.function, assignment)
        if misfit:
            return Outcome.ended(Cause.VALIDATION, Meaning.REFUSED, misfit)
        line = Line(context)
        if _crosses_at_start(found, assignment):
            line.cross()
        return _outcome(line, lambda: found.function(line, **assignment.arguments))

    def poll(self, assignment: Assignment, context: Context) -> Outcome:
        found = self._find(assignment)
        if found is None:
            return _tool_unknown(assignment, meaning=Meaning.UNKNOWN)
        return _ask_after(found.poll_function, "poll", assignment, context, _poll_answer)

    def cancel(self, assignment: Assignment, context: Context) -> Outcome:
        found = self._find(assignment)
        if found is None:
            return _tool_unknown(assignment, meaning=Meaning.UNKNOWN)
        return _ask_after(found.cancel_function, "cancel", assignment, context, _cancel_answer)

    def probe(self, assignment: Assignment, context: Context) -> ProbeAnswer:
        found = self._find(assignment)
        if found is None or found.probe_function is None:
            return ProbeAnswer(
                finding=ProbeFinding.UNKNOWN,
                message=f"Tool {assignment.tool} has no probe, so nothing was asked.",
            )
        try:
            answer = found.probe_function(ReadingLine(context), **assignment.arguments)
        except FenceLost:
            raise
        except (Exception, SystemExit) as error:
            return _probe_broke(error)
        return ProbeAnswer(finding=answer) if isinstance(answer, ProbeFinding) else answer

    def _find(self, assignment: Assignment) -> PythonTool | None:
        found = (
            registry.get(assignment.tool)
            if self._tools is None
            else self._tools.get(assignment.tool)
        )
        # An attempt keeps the version it was recorded with; another one is another tool.
        return found if found and found.version == assignment.tool_version else None


def _crosses_at_start(found: PythonTool, assignment: Assignment) -> bool:
    """Say whether to cross before the body: unless it only reads, or both sides say `marked`."""
    if assignment.recovery_class is RecoveryClass.READ_ONLY:
        return False
    return not (found.boundary is assignment.boundary is Boundary.MARKED)


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _misfit(function: Callable[..., Any], assignment: Assignment) -> str:
    try:
        _signature(function).bind(None, **assignment.arguments)
    except TypeError as error:
        return (
            f"The arguments do not fit tool {assignment.tool}: {error}. It was not run. "
            "Correct the arguments, or the tool's schema, which let them pass."
        )
    return ""


def _outcome(line: Line, body: Callable[[], Any]) -> Outcome:
    try:
        return _of_value(line, body())
    except FenceLost:
        raise
    except (Exception, SystemExit) as error:
        return outcome_of(error, crossed=line.crossed)


def _of_value(line: Line, value: Any) -> Outcome:
    if isinstance(value, Handle):
        value = Outcome.parked(value)
    if isinstance(value, Outcome):
        if value.handle and not _is_known(line, value.handle):
            line.store_handle(value.handle)  # committed before any wait (R72)
        return value
    return Outcome.succeeded(result_of(value), changed_nothing=_changed_nothing(line))


def _is_known(line: Line, handle: Handle) -> bool:
    """Say whether this handle is stored already; a new hint when to ask is not a new handle."""
    known = [stored.value for stored in (line.handle, line.assignment.handle) if stored]
    return handle.value in known


def _changed_nothing(line: Line) -> bool:
    """A tool with effects that ended well without ever crossing has changed nothing."""
    reads = line.assignment.recovery_class is RecoveryClass.READ_ONLY
    return not reads and not line.crossed


def _ask_after(
    function: Callable[..., Any] | None,
    verb: str,
    assignment: Assignment,
    context: Context,
    read: Callable[[Any, Handle], Any],
) -> Outcome:
    handle = assignment.handle
    if function is None or handle is None:
        missing = f"no {verb} function" if function is None else "no handle to ask after"
        return Outcome.ended(
            Cause.INTERNAL,
            Meaning.UNKNOWN,
            f"Tool {assignment.tool} has {missing}, so the outside was not asked and what "
            "became of the work is unknown. Look there, or attach its handle.",
        )
    line = ReadingLine(context)
    line.crossed = True  # whatever a poll runs into says nothing about the work behind the handle
    return _outcome(line, lambda: read(function(line, handle), handle))


def _poll_answer(value: Any, handle: Handle) -> Any:
    """None from a poll means: not done yet, ask again."""
    return Outcome.parked(handle) if value is None else value


def _cancel_answer(value: Any, handle: Handle) -> Outcome:
    """A cancel is a request: unless the tool proves an end by an outcome, the work goes on."""
    return value if isinstance(value, Outcome) else Outcome.parked(handle)


def _probe_broke(error: BaseException) -> ProbeAnswer:
    return ProbeAnswer(
        finding=ProbeFinding.UNKNOWN,
        message=f"The probe itself broke, which proves nothing: {message_of(error)}",
        evidence={"exception": recorded(error)},
    )


def _tool_unknown(assignment: Assignment, meaning: Meaning = Meaning.NOT_BEGUN) -> Outcome:
    near = registry.nearest(assignment.tool)
    hint = f" The nearest known name is {near!r}." if near and near != assignment.tool else ""
    return Outcome.ended(
        Cause.TOOL_UNKNOWN,
        meaning,
        f"This worker knows no Python tool {assignment.tool!r} in version "
        f"{assignment.tool_version}, so it ran nothing.{hint} Add its module to the list of "
        "tool modules, or close the call.",
    )
