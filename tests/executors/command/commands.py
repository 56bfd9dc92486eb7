"""Commands run for real, and what came of them."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from executors.command import sandbox
from executors.command.executor import CommandExecutor
from executors.contract import Outcome
from tests.executors.recording_context import RecordingContext, an_assignment

PYTHON = "/usr/bin/python3"


class TimedContext(RecordingContext):
    """A recording context whose time runs out."""

    def remaining_s(self) -> float:
        elapsed_s = time.monotonic() - self.__dict__.setdefault("began", time.monotonic())
        return max(0.0, self.remaining - elapsed_s)


def context_of(config: dict[str, Any], **settings: Any) -> RecordingContext:
    changes = settings.pop("assignment", {})
    arguments = settings.pop("arguments", {})
    assignment = an_assignment(
        executor="command", executor_config=config, arguments=arguments, **changes
    )
    return TimedContext(assignment, **settings)


def run(config: dict[str, Any], **settings: Any) -> tuple[Outcome, RecordingContext]:
    context = context_of(config, **settings)
    return CommandExecutor().run(context.assignment, context), context


def text_of(outcome: Outcome) -> str:
    assert outcome.result is not None, outcome
    return outcome.result.body.decode()


@contextmanager
def a_folder() -> Iterator[Path]:
    """A folder that commands may write, reachable for their own uid."""
    with tempfile.TemporaryDirectory(prefix="clearhouse-command-") as name:
        if os.geteuid() == 0:
            os.chown(name, sandbox.SANDBOX_ID, sandbox.SANDBOX_ID)
        yield Path(name)


def require_sandbox() -> None:
    """Skip with a named reason, or fail where the lane asks that nothing be skipped."""
    if sandbox.level().level != "none":
        return
    if os.environ.get("CLEARHOUSE_REQUIRE_NAMESPACES") == "1":
        pytest.fail(sandbox.level().sentence)
    pytest.skip(sandbox.level().sentence)


def require_python() -> None:
    if not os.access(PYTHON, os.X_OK):
        pytest.skip(f"The escape kit is written in Python, and {PYTHON} is not installed.")
