"""Attempts at sandbox tools: in this interpreter, or in one of their own that can be killed.

`python -m tests.sandbox.attempts '{"tool": ..., ...}'` runs one and says each request to the
ledger as a line.
"""

import json
import sys
import uuid
from dataclasses import replace
from typing import Any

from executors.contract import Assignment, Outcome, ProbeAnswer
from executors.python import PythonExecutor, registry
from ledger.vocabulary import AttemptKind, RecoveryClass
from tests.executors.recording_context import RecordingContext, an_assignment
from tests.sandbox.world import Child


def assigned(tool: str, *, marker: str = "", **changes: Any) -> Assignment:
    """An assignment as the ledger would make it for a sandbox tool, with a marker of its own."""
    found = registry.load(["sandbox.tools"])[tool]
    plain = {
        "tool": tool,
        "recovery_class": found.recovery_class or RecoveryClass.SIDE_EFFECT,
        "boundary": found.boundary,
        "marker": marker or f"clearhouse-{uuid.uuid4()}",
        "idempotency_key": uuid.uuid4().hex,
    }
    return an_assignment(**{**plain, **changes})


def ran(tool: str, arguments: dict[str, Any], **changes: Any) -> tuple[Outcome, RecordingContext]:
    """Run a tool once; return what became of it and what it asked the ledger."""
    context = RecordingContext(assigned(tool, arguments=arguments, **changes))
    return PythonExecutor().run(context.assignment, context), context


def probed(assignment: Assignment) -> ProbeAnswer:
    """Ask the outside whether the effect of this assignment happened."""
    return PythonExecutor().probe(assignment, RecordingContext(assignment))


def polled(parked: Outcome, tool: str, **changes: Any) -> tuple[Outcome, RecordingContext]:
    """Ask after a parked call once."""
    assignment = assigned(tool, kind=AttemptKind.POLL, handle=parked.handle, crossed=True)
    context = RecordingContext(replace(assignment, **changes))
    return PythonExecutor().poll(context.assignment, context), context


def value_of(outcome: Outcome | ProbeAnswer) -> Any:
    """The JSON value of a result."""
    assert outcome.result is not None, outcome
    return json.loads(outcome.result.body)


def a_killable(tool: str, arguments: dict[str, Any], marker: str) -> Child:
    """Run an attempt in an interpreter of its own."""
    wanted = {"tool": tool, "arguments": arguments, "marker": marker, "idempotency_key": marker}
    return Child(sys.executable, "-m", "tests.sandbox.attempts", json.dumps(wanted))


def _say_all(wanted: dict[str, Any]) -> None:
    assignment = assigned(**wanted)
    context = RecordingContext(assignment)
    context.on_call = lambda verb: print(verb, *map(str, context.calls[-1][1:]), flush=True)
    outcome = PythonExecutor().run(assignment, context)
    print("outcome", outcome, flush=True)


if __name__ == "__main__":
    _say_all(json.loads(sys.argv[1]))
