"""Two people, two watchdogs, a worker that wakes: one of them wins, the other is told."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from ledger.errors import FenceLost, LedgerError
from ledger.journal import events_of
from ledger.models import ToolCall
from recovery import resolutions, stages
from recovery.models import Resolution, ResolutionEvent
from recovery.refusals import AlreadyDecided, NotPending
from tests import builders, waits
from tests.builders import fresh
from tests.cast import Acme, Person, a_person, as_decider
from tests.recovery.deciding import AT_ONCE, a_decision, ambiguous, decide, found, incident_of
from tests.refusals import sql
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def recording(call: ToolCall, answer: str, by: Person, **more: Any) -> Callable[[], Resolution]:
    decision = a_decision(call, answer, **more)
    incident_id = incident_of(call).id
    return lambda: resolutions.record(incident_id=incident_id, decision=decision, by=by)


def fall_due(call: ToolCall) -> None:
    sql("UPDATE recovery_incident SET pending_until = clock_timestamp() - interval '1 second' "
        "WHERE call_id = %s", call.id)  # fmt: skip


def carried(call: ToolCall) -> int:
    return ResolutionEvent.objects.filter(resolution__call=call, kind="carried_out").count()


@pytest.mark.parametrize("policy", [{}, AT_ONCE], ids=["with_a_delay", "at_once"])
def test_of_two_operators_at_once_one_decides_and_the_other_is_told_what_happened(
    acme: Acme, policy: dict[str, Any]
) -> None:
    call = ambiguous(acme, **policy)
    people = [as_decider(acme.olga), as_decider(a_person("otto", acme.workspace, "operator"))]
    evidence = found(call, "happened", people[0])
    answers = at_once(
        [recording(call, "happened", each, evidence=(evidence.id,)) for each in people]
    )
    won = [each for each in answers if isinstance(each, Resolution)]
    lost = [each for each in answers if isinstance(each, LedgerError)]
    assert (len(won), len(lost)) == (1, 1), answers
    told = str(lost[0])
    assert f"{won[0].by_name} recorded" in told if not policy else "settled as succeeded" in told


def test_the_second_operator_waits_for_the_first_and_then_looks_again(acme: Acme) -> None:
    call, olga = ambiguous(acme), as_decider(acme.olga)
    second = recording(call, "abandon", olga)
    waiting: list[int] = []
    recorded: list[int] = []

    def record_second() -> Resolution:
        waits.until(lambda: recorded, what="the first decision, not yet committed")
        waiting.append(waits.backend_pid())
        return second()

    def record_first() -> Resolution:
        with transaction.atomic():
            first = decide(acme, call, "abandon")
            recorded.append(waits.backend_pid())
            waits.until(lambda: waiting, what="the second operator")
            waits.until_blocked(waiting[0], by=recorded[0])
            return first

    first, refused = at_once([record_first, record_second])
    assert isinstance(first, Resolution), first
    assert isinstance(refused, AlreadyDecided), refused


def test_a_taking_back_at_the_last_moment_wins_or_comes_too_late_never_both(acme: Acme) -> None:
    olga = as_decider(acme.olga)
    for _ in range(5):
        call = ambiguous(acme)
        resolution = decide(acme, call, "happened")
        fall_due(call)
        _, taken = at_once(
            [
                resolutions.carry_out_due,
                lambda id_=resolution.id: resolutions.take_back(
                    resolution_id=id_, grounds="No.", by=olga
                ),
            ]
        )
        stage = stages.of(Resolution.objects.get(id=resolution.id))
        state = "ambiguous" if stage == "taken_back" else "succeeded"
        if stage == "pending":  # the sweep skipped what the taking back held, and lost nothing
            pytest.fail("neither of the two ended it")
        assert fresh(call).state == state
        assert isinstance(taken, NotPending) == (stage == "carried_out")


def test_two_watchdogs_carry_a_decision_out_once(acme: Acme) -> None:
    call = ambiguous(acme)
    decide(acme, call, "happened")
    fall_due(call)
    at_once([resolutions.carry_out_due] * 3)
    resolutions.carry_out_due()
    assert carried(call) == 1
    assert [each.kind for each in events_of(call.id)].count("proved_done") == 1


def test_a_worker_that_wakes_in_the_middle_of_a_denial_settles_nothing(acme: Acme) -> None:
    call, olga = ambiguous(acme, **AT_ONCE), as_decider(acme.olga)
    evidence = found(call, "did_not_happen", olga)
    deny = recording(call, "did_not_happen", olga, then="close", evidence=(evidence.id,))

    denied, woke = at_once([deny, lambda: builders.settle(call, {"id": 7})])

    assert isinstance(woke, FenceLost)
    assert call.evidence.filter(kind="late_result").count() == 1
    if isinstance(denied, Resolution):
        assert (fresh(call).state, fresh(call).effect) == ("failed", "did_not_happen")
    else:  # its report came first, so the denial had looked at too little
        assert "A late result of this call is on its file" in str(denied)
        builders.fire()
        assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")


def test_a_decision_and_the_sweep_that_adopts_a_late_result_never_both_settle(acme: Acme) -> None:
    for _ in range(3):
        call, olga = ambiguous(acme, **AT_ONCE), as_decider(acme.olga)
        evidence = found(call, "did_not_happen", olga)
        with pytest.raises(FenceLost):
            builders.settle(call, {"id": 7})
        deny = recording(call, "did_not_happen", olga, then="close", evidence=(evidence.id,))
        at_once([deny, builders.fire])
        builders.fire()
        assert sum(each.settles for each in events_of(call.id)) == 1


class Crash(Exception):
    """The machine stops here."""


@transaction.atomic
def _sweep_and_crash() -> None:
    resolutions.carry_out_due()
    raise Crash


def test_a_crash_before_the_commit_leaves_the_decision_to_the_next_sweep(acme: Acme) -> None:
    call = ambiguous(acme)
    resolution = decide(acme, call, "happened")
    fall_due(call)

    with pytest.raises(Crash):
        _sweep_and_crash()

    assert fresh(call).state == "ambiguous"
    resolutions.carry_out_due()
    assert (fresh(call).state, stages.of(resolution)) == ("succeeded", "carried_out")
    connection.close()
