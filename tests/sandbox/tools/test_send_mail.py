"""`sandbox.send_mail`: a real message, which can double, and a probe that finds each."""

import socket
from typing import Any

import pytest

from executors.contract import Outcome
from executors.python import PythonExecutor
from ledger.vocabulary import Cause, Instruction, Meaning, ProbeFinding
from sandbox.addresses import SMTP_PORT
from tests.executors.recording_context import RecordingContext
from tests.sandbox.attempts import (
    a_killable,
    assigned,
    probed,
    ran,
    value_of,
)
from tests.sandbox.world import World

TOOL = "sandbox.send_mail"


def a_mail(to: str = "olga", **more: Any) -> dict[str, Any]:
    return {"to": f"{to}@sandbox.invalid", "subject": "Grüße", "body": "Good day.", **more}


def ended(outcome: Outcome) -> tuple[Cause | None, Meaning | None]:
    return outcome.cause, outcome.means


def test_a_message_arrives_with_its_marker_and_message_id(world: World) -> None:
    outcome, context = ran(TOOL, a_mail())
    assert context.verbs == ["cross"]
    marker = context.assignment.marker
    (entry,) = world.ask("GET", f"/mailbox?marker={marker}")[1]
    assert (
        entry["message_id"] == value_of(outcome)["message_id"] == f"<{marker}@clearhouse.invalid>"
    )
    assert (entry["to"], entry["subject"]) == ("olga@sandbox.invalid", "Grüße")


def test_two_sends_with_one_marker_are_two_messages(world: World) -> None:
    _, context = ran(TOOL, a_mail(), marker="doubled")
    ran(TOOL, a_mail(), marker="doubled", fence=2)
    answer = probed(context.assignment)
    assert answer.finding is ProbeFinding.HAPPENED
    assert len(answer.evidence["messages"]) == 2


def test_a_marker_of_any_shape_is_found_again(world: World) -> None:
    _, context = ran(TOOL, a_mail(), marker="ä b&c=" + "x" * 200)
    assert probed(context.assignment).finding is ProbeFinding.HAPPENED


def test_a_refused_connection_never_began(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free_port = taken.getsockname()[1]
    monkeypatch.setenv(SMTP_PORT, str(free_port))
    outcome, context = ran(TOOL, a_mail())
    assert ended(outcome) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert context.calls == []


def test_a_server_that_never_greets_was_never_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.tools.send_mail.CONNECT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv(SMTP_PORT, str(silent.getsockname()[1]))
        outcome, context = ran(TOOL, a_mail())
    assert ended(outcome) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert context.calls == []


@pytest.mark.parametrize(
    ("to", "cause"),
    [
        ("refuse-450", Cause.RATE_LIMITED),
        ("refuse-550", Cause.NOT_FOUND),
        ("refuse-530", Cause.AUTH),
        ("refuse-after-554", Cause.VALIDATION),
    ],
)
def test_a_reply_that_says_no_proves_that_nothing_was_taken(
    world: World, to: str, cause: Cause
) -> None:
    outcome, context = ran(TOOL, a_mail(to))
    assert ended(outcome) == (cause, Meaning.REFUSED)
    assert probed(context.assignment).finding is ProbeFinding.DID_NOT_HAPPEN


@pytest.mark.parametrize(
    ("to", "finding"),
    [
        ("drop", ProbeFinding.HAPPENED),
        ("drop-early", ProbeFinding.DID_NOT_HAPPEN),
        ("refuse-after-421", ProbeFinding.DID_NOT_HAPPEN),
    ],
)
def test_a_lost_answer_proves_nothing_until_the_mailbox_is_asked(
    world: World, to: str, finding: ProbeFinding
) -> None:
    outcome, context = ran(TOOL, a_mail(to))
    assert ended(outcome) == (Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    assert probed(context.assignment).finding is finding


def test_an_answer_that_does_not_come_in_time_proves_nothing(world: World) -> None:
    assignment = assigned(TOOL, arguments=a_mail("slow-5"))
    outcome = PythonExecutor().run(assignment, RecordingContext(assignment, remaining=1.5))
    assert outcome.means is Meaning.UNKNOWN
    assert probed(assignment).finding is ProbeFinding.HAPPENED


@pytest.mark.parametrize(
    ("pause", "phase", "messages"),
    [
        ("pause_before_cross_s", "before_cross", 0),
        ("pause_after_cross_s", "after_cross", 0),
        ("pause_after_effect_s", "after_effect", 1),
    ],
)
def test_a_sender_killed_in_a_phase_leaves_what_that_phase_had_done(
    world: World, pause: str, phase: str, messages: int
) -> None:
    child = a_killable(TOOL, {**a_mail(), pause: 60}, f"killed-{phase}")
    child.wait_for(phase)
    child.kill()
    assert ("cross\n" in child.said) == (phase != "before_cross")
    assert len(world.ask("GET", f"/mailbox?marker=killed-{phase}")[1]) == messages


def test_a_sender_asked_to_stop_before_the_message_sends_nothing(world: World) -> None:
    assignment = assigned(TOOL, arguments=a_mail(pause_after_cross_s=60))
    context = RecordingContext(assignment, instruction=Instruction.STOP)
    outcome = PythonExecutor().run(assignment, context)
    assert ended(outcome) == (Cause.NOT_BEGUN_REPORTED, Meaning.NOT_BEGUN)
    assert probed(assignment).finding is ProbeFinding.DID_NOT_HAPPEN


def test_a_probe_that_cannot_reach_the_mailbox_knows_nothing(own_world: World) -> None:
    _, context = ran(TOOL, a_mail())
    own_world.kill()
    assert probed(context.assignment).finding is ProbeFinding.UNKNOWN


def test_a_message_is_still_found_after_the_mailbox_was_killed(own_world: World) -> None:
    _, context = ran(TOOL, a_mail())
    own_world.kill()
    own_world.start()
    assert probed(context.assignment).finding is ProbeFinding.HAPPENED


def test_a_header_cannot_be_smuggled_in_by_a_subject(world: World) -> None:
    outcome, context = ran(TOOL, {**a_mail(), "subject": "x\r\nBcc: all@sandbox.invalid"})
    assert outcome.means is Meaning.NOT_BEGUN
    assert context.calls == []
