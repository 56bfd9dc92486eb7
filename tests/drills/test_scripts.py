"""A seed is a script: the same submits and the same faults, whatever the machine."""

from collections import Counter

import pytest

from drills.chaos import faults, intents, relays
from drills.chaos.faults import BETWEEN_BOUNDARY_AND_EFFECT, KINDS, Fault
from drills.chaos.nemesis import _DEEDS
from ledger.faults import DEEDS, POINTS
from ledger.policies import BOUNDS

SEEDS = range(5)


def test_a_seed_gives_the_same_intents_and_faults_again() -> None:
    assert intents.script(7, 200) == intents.script(7, 200)
    assert faults.script(7, 40, submits=200) == faults.script(7, 40, submits=200)


def test_another_seed_gives_other_ones() -> None:
    assert intents.script(7, 50) != intents.script(8, 50)
    assert [each.kind for each in faults.script(7, 50, submits=50)] != [
        each.kind for each in faults.script(8, 50, submits=50)
    ]


def test_every_intent_has_a_key_of_its_own() -> None:
    keys = [intent.key for intent in intents.script(1, 600)]
    assert len(set(keys)) == 600


@pytest.mark.parametrize("seed", SEEDS)
def test_every_tool_and_every_way_to_submit_occurs(seed: int) -> None:
    script = intents.script(seed, 600)
    assert {intent.tool for intent in script} == set(intents.MIX)
    assert {intent.how for intent in script} == set(intents.HOW)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_script_of_120_faults_aims_20_between_boundary_and_effect(seed: int) -> None:
    points = Counter(fault.point for fault in faults.script(seed, 120, submits=600))
    assert sum(points[point] for point in BETWEEN_BOUNDARY_AND_EFFECT) >= 20


def test_faults_are_spread_over_all_submits_in_order() -> None:
    places = [fault.at for fault in faults.script(3, 120, submits=600)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, 595)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_fault_can_be_done(kind: str) -> None:
    fault = Fault(1, kind, 0, 0.5)
    if fault.point:
        assert fault.point in POINTS
        assert kind.partition(" ")[0] in DEEDS
    else:
        assert kind in _DEEDS


def test_a_seed_gives_the_same_relays_again() -> None:
    assert relays.script(7, 200) == relays.script(7, 200)
    assert relays.script(7, 200) != relays.script(8, 200)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_relay_asks_for_the_same_call_twice(seed: int) -> None:
    for relay in relays.script(seed, 600):
        calls = [call for leg in relay.legs for reply in leg.replies for call in reply.calls]
        assert len(calls) == relays.LEGS * relays.REPLIES * relays.CALLS
        assert all(calls.count(call) == 1 for call in calls)


@pytest.mark.parametrize("seed", SEEDS)
def test_relays_of_a_script_are_written_twice_and_wanted_by_rivals_now_and_then(seed: int) -> None:
    legs = [leg for relay in relays.script(seed, 600) for leg in relay.legs]
    assert {leg.rivals for leg in legs} == {True, False}
    assert {reply.twice for leg in legs for reply in leg.replies} == {True, False}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_script_of_120_faults_aims_at_compactions_and_at_hand_offs(seed: int) -> None:
    points = {fault.point for fault in faults.script(seed, 120, submits=600)}
    assert {"during_compaction", "during_handoff"} <= points


def test_orders_between_boundary_and_record_are_for_what_must_not_be_repeated() -> None:
    assert Fault(1, "kill at before_effect", 0, 0.0).tools == intents.SIDE_EFFECTS
    assert Fault(1, "kill at before_start", 0, 0.0).tools == ()


def test_leases_of_a_drill_are_within_the_bounds_of_policies() -> None:
    from drills.chaos.running import TIMEOUTS

    for name, seconds in TIMEOUTS.items():
        bound = BOUNDS[f"timeouts.{name}"]
        assert bound.low <= seconds <= bound.high
