"""The stack that these tests break, made once; afterwards the ledger must hold, whatever they did.

It has its own servers, so nothing of the database fixtures applies. Figures are put on the
test's report by `measured` and printed at the end of the run.
"""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from drills.agent import Agent
from tests.acceptance.stack import Stack
from tests.sandbox.world import until

FIGURES = "figures"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "acceptance: on a whole stack of real processes")


@pytest.fixture(scope="session")
def running_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Start everything once for the session."""
    stack = Stack(tmp_path_factory.mktemp("stack"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def stack(running_stack: Stack) -> Iterator[Stack]:
    """The stack, whole before each test; after it every invariant of the ledger is asked."""
    running_stack.revive()
    began = datetime.now(UTC).isoformat()
    yield running_stack
    found: list[str] = []

    def is_clean() -> bool:
        found[:] = running_stack.desk.ask("verify", since=began)
        return not found

    # Liveness is judged a little later where the test has just started a program again.
    with contextlib.suppress(AssertionError):
        until(is_clean, "every invariant holds", 10)
    assert found == []


@pytest.fixture
def agent(stack: Stack) -> Agent:
    """An agent of the workspace whose leases are short."""
    return stack.agent()


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[str, float], None]:
    """Put a figure, in seconds, on the report of this run."""
    return lambda what, seconds: record_property(FIGURES, f"{what}: {seconds:.2f} s")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    lines = [
        f"  {report.nodeid.rpartition('::')[2]}: {value}"
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == FIGURES
    ]
    if lines:
        terminalreporter.write_sep("-", "measured on the running stack")
        terminalreporter.write_line("\n".join(lines))
