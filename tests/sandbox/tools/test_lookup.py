"""`sandbox.lookup` reads an entry and cannot be led astray; `sandbox.tally` counts."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from executors.python import PythonExecutor, registry
from ledger.policies import lint, policy_for
from ledger.vocabulary import Cause, Instruction, Meaning
from tests.executors.recording_context import RecordingContext
from tests.sandbox.attempts import assigned, ran, value_of
from tests.sandbox.world import World


def test_a_seeded_entry_is_read_without_crossing(world: World) -> None:
    outcome, context = ran("sandbox.lookup", {"name": "opening-hours"})
    assert value_of(outcome)["entry"]["saturday"] == "10:00-14:00"
    assert context.calls == []


def test_an_entry_in_a_folder_is_read(world: World) -> None:
    assert value_of(ran("sandbox.lookup", {"name": "desks/exchange"})[0])["entry"]["open"] is True


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("nothing-here", Cause.NOT_FOUND),
        ("../mailbox/x", Cause.VALIDATION),
        ("/etc/passwd", Cause.VALIDATION),
        ("a\x00b", Cause.VALIDATION),
    ],
)
def test_a_name_that_cannot_be_read_is_refused(world: World, name: str, cause: Cause) -> None:
    outcome, _ = ran("sandbox.lookup", {"name": name})
    assert (outcome.cause, outcome.means) == (cause, Meaning.REFUSED)


def test_a_slow_lookup_sends_heartbeats_with_a_cursor(world: World) -> None:
    arguments = {"name": "opening-hours", "slow_s": 0.9}
    outcome, context = ran("sandbox.lookup", arguments, lease_s=0.3)
    assert outcome.cause is None
    assert len(context.calls) >= 3
    assert context.calls[0][1]["phase"] == "before_reading"


def test_a_slow_lookup_that_is_asked_to_stop_stops(world: World) -> None:
    assignment = assigned("sandbox.lookup", arguments={"name": "opening-hours", "slow_s": 60})
    context = RecordingContext(assignment, instruction=Instruction.CANCEL)
    outcome = PythonExecutor().run(assignment, context)
    assert (outcome.cause, outcome.means) == (Cause.NOT_BEGUN_REPORTED, Meaning.NOT_BEGUN)


def test_a_tally_counts_every_run_of_many_at_a_time(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: ran("sandbox.tally", {})[0], range(200)))
    assert [value_of(outcome) for outcome in outcomes] == [{}] * 200
    lines = (world.folder.root / "tally.txt").read_text().splitlines()
    assert len(lines) == 200
    assert len(set(lines)) == 1


@pytest.mark.parametrize("name", sorted(registry.load(["sandbox.tools"])))
def test_the_policy_of_each_sandbox_tool_is_one_the_ledger_accepts(name: str) -> None:
    found = registry.get(name)
    assert found is not None
    assert found.recovery_class is not None
    assert found.description
    declared = {"recovery_class": found.recovery_class, "boundary": found.boundary}
    assert lint(policy_for({**declared, **found.policy})) == []
