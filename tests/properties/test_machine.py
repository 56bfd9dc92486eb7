"""Any sequence of verbs, deaths and passing time keeps what the ledger promises.

`CLEARHOUSE_TEST_HISTORIES` sets how many histories are tried, drawn at random, for a long run;
without it they are few and the same each time.
"""

import os
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.properties.history import History

HISTORIES = int(os.environ.get("CLEARHOUSE_TEST_HISTORIES", "0"))
STEPS = 60


class Machine(RuleBasedStateMachine):
    """A history whose every step Hypothesis chooses by a number."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.history = History(Path(tempfile.mkdtemp(dir=self.folder)))

    @rule(chance=st.integers(0, 2**64 - 1))
    def something_happens(self, chance: int) -> None:
        # One rule, because Hypothesis would leave most of many out of a history, and then
        # hardly an attempt comes as far as its boundary.
        note(self.history.goes_on(Random(chance)))

    def teardown(self) -> None:
        self.history.ends()


@pytest.mark.django_db(transaction=True)
def test_any_history_keeps_what_the_ledger_promises(tmp_path: Path) -> None:
    Machine.folder = tmp_path
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=HISTORIES or 15,
            stateful_step_count=STEPS,
            report_multiple_bugs=False,
            derandomize=not HISTORIES,
            database=None,
            deadline=None,
            # Shrinking replays histories for minutes; sixty steps can be read as they are.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
