"""What a tool is told of its time and its budget."""

from dataclasses import replace

import pytest

from executors import runner
from executors.contract import Assignment
from ledger.vocabulary import AttemptKind
from tests import builders
from tests.cast import Acme
from tests.recovery.test_budgets import again, failed_once


@pytest.fixture
def assignment(acme: Acme) -> Assignment:
    call = builders.a_call(acme, "running")
    return runner.assignment_of(builders.claim_of(call))


@pytest.mark.parametrize(("left_s", "time_s"), [(300.0, 60.0), (7.0, 7.0), (-3.0, 0.0)])
def test_a_run_has_the_smaller_of_its_attempts_and_its_calls_time(
    assignment: Assignment, left_s: float, time_s: float
) -> None:
    assert replace(assignment, schedule_to_close_s=left_s).time_s == time_s


def test_a_probe_may_ask_after_the_calls_time_is_over(assignment: Assignment) -> None:
    probe = replace(assignment, kind=AttemptKind.PROBE, schedule_to_close_s=-3.0)
    assert probe.time_s == probe.start_to_close_s


def test_a_tool_is_told_the_trace_of_its_own_attempt(acme: Acme) -> None:
    sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    claim = builders.claim_of(builders.a_call(acme, "running", traceparent=sent))
    told = runner.assignment_of(claim).traceparent
    assert told == f"{sent[:36]}{claim.attempt_id.hex[16:]}-01"


def test_a_call_without_a_trace_tells_its_tool_of_none(assignment: Assignment) -> None:
    assert assignment.traceparent is None


def test_a_tool_is_told_how_many_attempts_its_call_has_left(acme: Acme) -> None:
    call = builders.a_call(acme, "running", "read_only")
    assert runner.assignment_of(builders.claim_of(call)).attempts_left == 4
    builders.settle(call)
    repeated = again(failed_once(acme, builders.a_tool(acme, "read", "read_only")))
    assert runner.assignment_of(builders.claim_of(repeated)).attempts_left == 3
