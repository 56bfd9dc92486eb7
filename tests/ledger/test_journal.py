"""The journal: one move, one event, one update; the chain of hashes can be refolded anywhere."""

import hashlib
import json
from datetime import UTC

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from ledger import journal, machine
from ledger.errors import IllegalTransition
from ledger.journal import Move
from ledger.models import Event, ToolCall
from ledger.vocabulary import Actor, CallState, Deadline
from tests import builders
from tests.cast import Acme
from tests.refusals import refused_by_postgresql


def refolded(event: Event) -> bytes:
    """The hash of an event, computed from its columns without the database."""

    def instant(at: object) -> str:
        return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") if at else ""  # type: ignore[attr-defined]

    parts = [
        str(event.call_id), str(event.seq), event.kind, event.from_state, str(event.to_state),
        str(event.effect), str(event.actor), event.actor_id, instant(event.at),
        "" if event.fence is None else str(event.fence), instant(event.lease_until),
        event.cause, event.facts,
    ]  # fmt: skip
    return hashlib.sha256(bytes(event.prev_hash) + "\x1f".join(parts).encode()).digest()


def test_a_list_of_moves_makes_one_event_each(acme: Acme) -> None:
    one, two = (builders.a_call(acme, in_state="running") for _ in range(2))
    before = one.seq
    stand = journal.append(
        [Move(call=call, kind="progress", by=Actor.WORKER, fence=1) for call in (one, two)]
    )
    assert [each.id for each in stand] == [one.id, two.id]
    for call in (one, two):
        assert journal.events_of(call.id)[-1].kind == "progress"
        assert builders.fresh(call).seq == call.seq == before + 1


def test_a_list_of_moves_costs_as_many_statements_as_one(acme: Acme) -> None:
    calls = [builders.a_call(acme, in_state="running") for _ in range(6)]

    def statements(some: list[ToolCall]) -> int:
        with CaptureQueriesContext(connection) as queries:
            journal.append([Move(call=c, kind="progress", by=Actor.WORKER) for c in some])
        return len(queries)

    assert statements(calls[:1]) == statements(calls[1:]) == 2


def test_one_bad_row_fails_the_whole_statement(acme: Acme) -> None:
    good, stale = (builders.a_call(acme, in_state="running") for _ in range(2))
    before = Event.objects.count()
    stale.state = CallState.PARKED
    with refused_by_postgresql("CH002"):
        journal.append([Move(call=c, kind="progress", by=Actor.WORKER) for c in (good, stale)])
    assert Event.objects.count() == before


def test_an_illegal_move_writes_nothing(acme: Acme) -> None:
    call = builders.a_call(acme)
    before = Event.objects.count()
    with pytest.raises(IllegalTransition):
        journal.append([Move(call=call, kind="parked", by=Actor.WORKER)])
    assert Event.objects.count() == before


def test_a_move_must_carry_what_its_kind_needs(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="interrupted")
    with pytest.raises(ValueError, match="escalated must carry grounds, reason"):
        journal.append([Move(call=call, kind="escalated", by=Actor.RECOVERY)])


@pytest.mark.parametrize("state", sorted(str(state) for state in builders.WALKS))
def test_entering_a_state_disarms_the_deadlines_it_does_not_have(acme: Acme, state: str) -> None:
    call = builders.a_call(acme, in_state=state)
    armed = {d for d in Deadline if getattr(call, f"{d}_at") is not None}
    assert armed <= machine.TIMERS[CallState(state)]
    assert bool(armed) is not call.is_settled


def test_arming_a_deadline_that_the_state_does_not_have_arms_nothing(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    arm = {Deadline.REVIEW: 5.0}
    journal.append([Move(call=call, kind="progress", by=Actor.WORKER, arm=arm)])
    assert builders.fresh(call).review_at is None


@pytest.mark.corrupts
def test_none_disarms_a_deadline(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    arm = {Deadline.HEARTBEAT: None}
    journal.append([Move(call=call, kind="progress", by=Actor.WORKER, arm=arm)])
    assert builders.fresh(call).heartbeat_at is None


def test_a_deadline_is_counted_by_the_clock_and_not_by_the_transaction(acme: Acme) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.05)")
    call = builders.a_call(acme)
    waits = call.schedule_to_start_at - call.published_at
    assert waits.total_seconds() == pytest.approx(30, abs=0.02)


@pytest.mark.parametrize("state", ["scheduled", "running", "ambiguous", "succeeded", "expired"])
def test_the_chain_recomputed_equals_the_databases(acme: Acme, state: str) -> None:
    call = builders.a_call(acme, in_state=state)
    previous = b""
    for event in journal.events_of(call.id):
        assert bytes(event.prev_hash) == previous
        assert refolded(event) == bytes(event.hash)
        previous = bytes(event.hash)
    assert bytes(call.head_hash) == previous


def test_facts_are_canonical_json(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    facts = {"b": [1, 2.5, "ü"], "a": None}
    journal.append([Move(call=call, kind="progress", by=Actor.WORKER, facts=facts)])
    written = journal.events_of(call.id)[-1].facts
    assert written.startswith('{"a"')
    assert json.loads(written) == facts


@pytest.mark.parametrize(
    ("state", "stamp"),
    [("scheduled", "recorded_at"), ("scheduled", "published_at"), ("running", "started_at"),
     ("interrupted", "crossed_at"), ("succeeded", "finished_at"), ("succeeded", "settled_at")],
)  # fmt: skip
def test_each_moment_of_a_call_has_its_own_time(acme: Acme, state: str, stamp: str) -> None:
    assert getattr(builders.a_call(acme, in_state=state), stamp) is not None


def test_a_move_is_undone_with_its_transaction(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    with transaction.atomic():
        journal.append([Move(call=call, kind="progress", by=Actor.WORKER)])
        transaction.set_rollback(True)
    assert builders.fresh(call).seq == len(journal.events_of(call.id))
