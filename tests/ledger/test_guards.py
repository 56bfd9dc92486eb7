"""What PostgreSQL refuses by itself, whatever the code above it does."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from ledger import journal
from ledger.journal import Move
from ledger.models import Attempt, Event, Evidence, Result, ToolCall
from ledger.vocabulary import Actor, CallState, Cause, Deadline, Effect, Meaning
from recovery.models import Step
from tests import builders
from tests.cast import Acme, Globex
from tests.refusals import CHECK, FOREIGN_KEY, PROTECTED, UNIQUE, refused_by_postgresql, sql


@pytest.mark.parametrize(
    "change",
    ["state = 'succeeded'", "effect = 'happened'", "seq = seq + 1", "state = 'ambiguous'"],
)
def test_a_call_does_not_change_without_its_event(acme: Acme, change: str) -> None:
    call = builders.a_call(acme, in_state="running")
    with refused_by_postgresql("CH004"):
        sql(f"UPDATE ledger_toolcall SET {change} WHERE id = %s", call.id)
    assert builders.fresh(call).state is CallState.RUNNING


def test_a_settled_call_cannot_be_opened_by_its_date(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    sql("UPDATE ledger_toolcall SET settled_at = NULL WHERE id = %s", call.id)
    assert builders.fresh(call).settled_at is not None


def test_an_event_that_starts_elsewhere_is_refused(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    call.state = CallState.RUNNING
    with refused_by_postgresql("CH002"):
        journal.append([Move(call=call, kind="crossed", by=Actor.WORKER, effect=Effect.POSSIBLE)])


def test_an_event_cannot_turn_an_effect_that_it_does_not_turn(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    with refused_by_postgresql("CH003"):
        journal.append([Move(call=call, kind="progress", by=Actor.WORKER, effect=Effect.POSSIBLE)])


def test_an_event_takes_only_the_effects_of_its_kind(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    with refused_by_postgresql("CH003"):
        journal.append([Move(call=call, kind="crossed", by=Actor.WORKER, effect=Effect.HAPPENED)])


PAIRS: list[tuple[str, str, dict[str, Any]]] = [
    ("side_effect", "attempt_failed", {"cause": Cause.HANG, "facts": {"grounds": "x"}}),
    ("idempotent_write", "failed", {"cause": Cause.HANG, "effect": Effect.NONE}),
    ("provider_auth", "succeeded", {"effect": Effect.NONE}),
    ("side_effect", "succeeded", {"effect": Effect.NONE}),
]


@pytest.mark.parametrize(
    ("recovery_class", "kind", "fields"), PAIRS, ids=[f"{c}-{k}" for c, k, _ in PAIRS]
)
def test_a_pair_that_the_class_does_not_allow_is_refused(
    acme: Acme, recovery_class: str, kind: str, fields: dict[str, Any]
) -> None:
    call = builders.a_call(acme, "running", recovery_class, crossed=True)
    with refused_by_postgresql("CH005"):
        journal.append([Move(call=call, kind=kind, by=Actor.WORKER, **fields)])


def test_only_auth_may_expire_over_an_open_crossing(acme: Acme) -> None:
    auth, write = (
        builders.a_call(acme, "running", each, crossed=True)
        for each in ("provider_auth", "idempotent_write")
    )
    for call in (auth, write):
        journal.append([Move(call=call, kind="attempt_failed", by=Actor.RECOVERY,
                             cause=Cause.HANG, facts={"grounds": "x"},
                             arm={Deadline.BACKOFF: 1.0})])  # fmt: skip
        Attempt.objects.filter(call=call).update(ended_at=call.started_at, outcome="ended")
    expired = {"kind": "expired", "by": Actor.RECOVERY, "facts": {"deadline": "x"}}
    journal.append([Move(call=auth, **expired)])
    with refused_by_postgresql("CH005"):
        journal.append([Move(call=write, **expired)])


def test_an_open_call_without_a_deadline_is_refused(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    none = ", ".join(f"{deadline}_at = NULL" for deadline in Deadline)
    with refused_by_postgresql(CHECK):
        sql(f"UPDATE ledger_toolcall SET {none} WHERE id = %s", call.id)


def test_a_settled_call_with_a_deadline_is_refused(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    with refused_by_postgresql(CHECK):
        sql("UPDATE ledger_toolcall SET review_at = clock_timestamp() WHERE id = %s", call.id)


def test_the_due_date_is_the_earliest_deadline(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    armed = [getattr(call, f"{d}_at") for d in Deadline if getattr(call, f"{d}_at")]
    assert call.due_at == min(armed)
    assert call.due_at == call.heartbeat_at


# What is only ever added


def _event(acme: Acme) -> UUID:
    return builders.a_call(acme).id


def _result(acme: Acme) -> UUID:
    return builders.a_call(acme, in_state="succeeded").id


def _evidence(acme: Acme) -> UUID:
    call = builders.a_call(acme, in_state="running", crossed=True)
    builders.report(call, Cause.TOOL_ERROR, Meaning.KNOWN,
                    stored=builders.settlement(builders.claim_of(call)).stored)  # fmt: skip
    return call.id


def _policy(acme: Acme) -> UUID:
    return UUID(str(builders.a_tool(acme).id))


def _step(acme: Acme) -> UUID:
    return UUID(str(Step.objects.filter(
        incident__call=builders.a_call(acme, in_state="ambiguous")).first().incident_id))  # type: ignore[union-attr]  # fmt: skip


APPEND_ONLY: list[tuple[str, str, str, Callable[[Acme], UUID]]] = [
    ("ledger_event", "call_id", "cause = 'x'", _event),
    ("ledger_result", "call_id", "media_type = 'x'", _result),
    ("ledger_evidence", "call_id", "message = 'x'", _evidence),
    ("ledger_policy", "tool_id", "declared = true", _policy),
    ("ledger_toolversion", "tool_id", "description = 'x'", _policy),
    ("recovery_step", "incident_id", "grounds = 'x'", _step),
]
append_only = pytest.mark.parametrize(
    ("table", "column", "change", "make"), APPEND_ONLY, ids=[row[0] for row in APPEND_ONLY]
)


@append_only
def test_what_is_append_only_cannot_be_edited(
    acme: Acme, table: str, column: str, change: str, make: Callable[[Acme], UUID]
) -> None:
    id_ = make(acme)
    with refused_by_postgresql(PROTECTED):
        sql(f"UPDATE {table} SET {change} WHERE {column} = %s", id_)


@append_only
def test_what_is_append_only_cannot_be_deleted(
    acme: Acme, table: str, column: str, change: str, make: Callable[[Acme], UUID]
) -> None:
    id_ = make(acme)
    with refused_by_postgresql(PROTECTED):
        sql(f"DELETE FROM {table} WHERE {column} = %s", id_)


def test_a_call_cannot_be_deleted(acme: Acme) -> None:
    call = builders.a_call(acme)
    with refused_by_postgresql(PROTECTED):
        sql("DELETE FROM ledger_toolcall WHERE id = %s", call.id)


# References stay inside a workspace


@pytest.mark.parametrize(
    ("table", "column"), [("ledger_toolcall", "agent_id"), ("ledger_toolcall", "session_id")]
)
def test_a_call_cannot_refer_to_another_workspace(
    acme: Acme, globex: Globex, table: str, column: str
) -> None:
    call = builders.a_call(acme)
    theirs = {"agent_id": globex.mallory.id, "session_id": builders.a_session(globex).id}[column]
    with refused_by_postgresql(FOREIGN_KEY):
        sql(f"UPDATE {table} SET {column} = %s WHERE id = %s", theirs, call.id)
        connection.check_constraints()


# One of each


def test_a_call_has_at_most_one_live_attempt(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    first = Attempt.objects.get(call=call)
    with refused_by_postgresql(UNIQUE):
        Attempt.objects.create(
            workspace_id=first.workspace_id, call=call, fence=2, kind=first.kind,
            worker_id=first.worker_id, fence_kind=first.fence_kind, effect_key=first.effect_key,
            granted_by="x", lease_until=first.lease_until,
        )  # fmt: skip


def test_a_fence_is_given_once(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="backing_off")
    first = Attempt.objects.get(call=call)
    with refused_by_postgresql(UNIQUE):
        Attempt.objects.create(
            workspace_id=first.workspace_id, call=call, fence=1, kind=first.kind,
            worker_id=first.worker_id, fence_kind=first.fence_kind, effect_key=first.effect_key,
            granted_by="x", lease_until=first.lease_until, ended_at=first.ended_at,
        )  # fmt: skip


def test_the_database_numbers_and_dates_an_event_itself(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    events = journal.events_of(call.id)
    assert [event.seq for event in events] == list(range(1, call.seq + 1))
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert bytes(call.head_hash) == bytes(events[-1].hash)
    assert Event.objects.filter(call=call, settles=True).count() == 0


def test_the_one_result_of_a_call_is_the_first(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    result = Result.objects.get(call=call)
    with refused_by_postgresql(UNIQUE):
        Result.objects.bulk_create([result])
    assert Evidence.objects.filter(call=call).count() == 0
    assert ToolCall.objects.open().count() == 0
