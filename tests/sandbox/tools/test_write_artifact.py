"""`sandbox.write_artifact`: the whole text under its name, or nothing."""

import hashlib
from pathlib import Path

import pytest

from executors.contract import FenceLost
from executors.python import PythonExecutor
from ledger.vocabulary import Cause, ProbeFinding
from tests.executors.recording_context import RecordingContext
from tests.sandbox.attempts import (
    a_killable,
    assigned,
    probed,
    ran,
    value_of,
)
from tests.sandbox.world import World

TEXT = "Grüße\n" * 1000
TOOL = "sandbox.write_artifact"


def visible(world: World) -> list[Path]:
    files = (file for file in world.folder.artifacts.rglob("*") if file.is_file())
    return [file for file in files if not file.name.startswith(".")]


def test_a_text_is_written_with_its_checksum_after_the_boundary(world: World) -> None:
    outcome, context = ran(TOOL, {"path": "reports/may.txt", "text": TEXT})
    file = world.folder.artifacts / "reports/may.txt"
    assert file.read_text() == TEXT
    assert value_of(outcome)["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert context.verbs == ["cross"]
    assert not outcome.changed_nothing


def test_writing_twice_leaves_one_file(world: World) -> None:
    folder = world.folder.artifacts / "twice"
    for _ in range(2):
        ran(TOOL, {"path": "twice/same.txt", "text": TEXT})
    assert [file.name for file in folder.iterdir()] == ["same.txt"]


@pytest.mark.parametrize("path", ["../out.txt", "/tmp/out.txt", ".hidden", "a/../../out.txt"])
def test_a_path_that_leads_out_is_refused_before_the_boundary(world: World, path: str) -> None:
    outcome, context = ran(TOOL, {"path": path, "text": TEXT})
    assert outcome.cause is Cause.VALIDATION
    assert context.calls == []
    assert not (world.folder.root / "out.txt").exists()


def test_a_lost_fence_writes_nothing(world: World) -> None:
    assignment = assigned(TOOL, arguments={"path": "fenced.txt", "text": TEXT})
    with pytest.raises(FenceLost):
        PythonExecutor().run(assignment, RecordingContext(assignment, lose_fence_at="cross"))
    assert not list(world.folder.artifacts.glob("*fenced*"))


def test_half_an_artifact_is_never_visible_under_its_name(own_world: World) -> None:
    arguments = {"path": "half.txt", "text": TEXT, "half": True}
    child = a_killable(TOOL, arguments, "half-marker")
    child.wait_for("cross")
    assert child.end() == -9
    (half,) = own_world.folder.artifacts.iterdir()
    assert half.name.endswith(".part")
    assert half.stat().st_size == len(TEXT.encode()) // 2
    assert visible(own_world) == []


def test_a_repeat_after_half_an_artifact_writes_all_of_it(own_world: World) -> None:
    whole = {"path": "half.txt", "text": TEXT}
    a_killable(TOOL, {**whole, "half": True}, "again-marker").end()
    outcome, _ = ran(TOOL, whole, marker="again-marker", fence=2)
    assert outcome.cause is None
    assert [file.read_text() for file in visible(own_world)] == [TEXT]


def test_an_older_artifact_stays_whole_until_the_new_one_is(own_world: World) -> None:
    ran(TOOL, {"path": "both.txt", "text": "old"})
    child = a_killable(
        TOOL, {"path": "both.txt", "text": TEXT, "pause_before_s": 60}, "both-marker"
    )
    child.wait_for("before_rename")
    assert (own_world.folder.artifacts / "both.txt").read_text() == "old"
    child.kill()
    assert (own_world.folder.artifacts / "both.txt").read_text() == "old"


@pytest.mark.parametrize(
    ("pause", "phase", "finding"),
    [
        ("pause_before_s", "before_rename", ProbeFinding.DID_NOT_HAPPEN),
        ("pause_after_s", "after_rename", ProbeFinding.HAPPENED),
    ],
)
def test_the_probe_tells_on_which_side_of_the_rename_it_died(
    own_world: World, pause: str, phase: str, finding: ProbeFinding
) -> None:
    arguments = {"path": "probed.txt", "text": TEXT, pause: 60}
    child = a_killable(TOOL, arguments, f"probed-{phase}")
    child.wait_for(phase)
    child.kill()
    assert probed(assigned(TOOL, arguments=arguments)).finding is finding


def test_a_positive_probe_brings_the_result_of_the_tool(world: World) -> None:
    arguments = {"path": "result.txt", "text": TEXT}
    outcome, context = ran(TOOL, arguments)
    assert value_of(probed(context.assignment)) == value_of(outcome)


def test_another_text_at_the_path_proves_neither(world: World) -> None:
    ran(TOOL, {"path": "other.txt", "text": "other"})
    answer = probed(assigned(TOOL, arguments={"path": "other.txt", "text": TEXT}))
    assert answer.finding is ProbeFinding.UNKNOWN
