"""SIGSTOP instead of death: the lease ends, the fence kills, and whoever wakes adds nothing."""

from collections.abc import Callable

import pytest

from drills.agent import Agent
from standalone import pids
from tests.acceptance.matrix import (
    SWEEP_S,
    UNHARMED,
    WHEN_LOST,
    noticed_after_s,
    outcomes_are,
)
from tests.acceptance.scenes import (
    EFFECTS,
    LOOKUP,
    PARKED,
    Playing,
    Scene,
    begin,
    world_is_right,
)
from tests.acceptance.stack import SWIFT_TIMEOUTS, Stack
from tests.sandbox.world import until

pytestmark = pytest.mark.acceptance

LEASE_S = SWIFT_TIMEOUTS["heartbeat_s"]
# One heartbeat at its start and none before its end, so that the outcome waits in the line.
SHORT_S = 1.0
SENT = Scene(
    "a mail whose outcome waits in the line",
    "sandbox.send_mail",
    lambda word: {
        "to": "ada@example.com", "subject": word, "body": "Hello.", "pause_after_effect_s": SHORT_S,
    },
    phase="after_effect",
)  # fmt: skip


READ = Scene(
    "a read that ends when it wakes",
    "sandbox.lookup",
    lambda word: {"name": "opening-hours", "slow_s": SHORT_S},
    phase="before_reading",
)


def fence_is_taken(playing: Playing) -> None:
    until(lambda: playing.at("fence_lost"), f"the fence of {playing.scene.name} is taken")


def test_hung_holders_lose_their_lease_and_add_nothing_when_they_wake(
    stack: Stack, agent: Agent, measured: Callable[[str, float], None]
) -> None:
    play = begin(agent, EFFECTS)
    holders = [agent.holder(playing.id) for playing in play.values()]
    launchers = [pid for holder in holders for pid in pids.children(holder)]
    fault_at = stack.freeze(*holders)
    for playing in play.values():
        fence_is_taken(playing)
    # The kernel's fence fires before the lease ends, so nothing lives that could still act.
    assert len(launchers) == len(EFFECTS)
    assert not any(map(pids.alive, launchers))
    stack.thaw(*holders)

    outcomes_are(play, WHEN_LOST)
    world_is_right(stack, play)
    for playing in play.values():
        seconds = noticed_after_s(playing, fault_at)
        measured(f"{playing.scene.name}, from SIGSTOP to noticed, lease {LEASE_S:g} s", seconds)
        assert seconds <= LEASE_S + 2 * SWEEP_S


def test_what_a_hung_holder_had_in_hand_is_kept_as_evidence(stack: Stack, agent: Agent) -> None:
    playing = begin(agent, (SENT,))[SENT]
    holder = agent.holder(playing.id)
    stack.freeze(holder)
    fence_is_taken(playing)
    stack.thaw(holder)

    until(lambda: playing.at("late_result"), "the late result is kept")
    call = playing.settled()
    assert (call["state"], call["effect"], call["attempts_used"]) == ("succeeded", "happened", 1)
    assert stack.mails(playing.word) == 1


def test_a_hung_worker_main_holds_up_no_attempt(stack: Stack, agent: Agent) -> None:
    play = begin(agent, EFFECTS)
    main = stack.children["effects"].pid
    stack.freeze(main)

    outcomes_are(play, UNHARMED)
    stack.thaw(main)
    world_is_right(stack, play)


def test_a_hung_reads_worker_loses_the_read_and_its_late_result_is_evidence(
    stack: Stack, agent: Agent
) -> None:
    play = begin(agent, (PARKED, READ))
    main = stack.children["reads"].pid
    stack.freeze(main)
    fence_is_taken(play[READ])
    stack.thaw(main)

    outcomes_are(play, {PARKED: UNHARMED[PARKED], READ: WHEN_LOST[LOOKUP]})
    until(lambda: play[READ].at("late_result"), "the late result is kept")
    world_is_right(stack, play)
