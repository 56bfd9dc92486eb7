"""Test 3 (R157): a long render, its workers and the watchdog killed; and one that is forgotten."""

import signal

from drills.rows.row import LIMIT_S, Played, Test, expect
from drills.waits import until
from standalone import pids

TOOL = "sandbox.render"
KILLED_TOGETHER = ("effects", "reads", "watchdog")
FRAMES, SECONDS = 24, 8


def restarted(test: Played) -> str:
    """Everything that could follow the render dies; it is found again by its handle."""
    test.submit(TOOL, {"frames": FRAMES, "seconds": SECONDS})
    test.until_state("parked")
    until(lambda: _told(test) > 0, "progress is told", LIMIT_S)
    before = _told(test)
    mains = [test.stack.children[name].pid for name in KILLED_TOGETHER]
    for pid in mains:
        pids.send(pid, signal.SIGKILL)
    until(lambda: not any(map(pids.alive, mains)), "workers and watchdog are dead")
    told = [before]
    call = until(lambda: _followed(test, told), "the render is followed to its end", LIMIT_S)
    expect(call["state"] == "succeeded", f"it settled as {call['state']}: {call['error']}")
    expect(told == sorted(told), f"progress fell: {told}")
    renders, handles = test.stack.world.renders(test.call), test.kinds().count("handle_stored")
    expect(renders == 1, f"the world has {renders} renders")
    expect(handles == 1, f"{handles} handles were stored")
    return f"one render, one handle, progress {before} to {told[-1]} lines, then its result"


def _followed(test: Played, told: list[int]) -> dict[str, object] | None:
    try:
        told.append(_told(test))
        call = test.agent.call(test.call)
    except OSError:
        return None
    return call if call["settled"] else None


def _told(test: Played) -> int:
    """How many lines of progress the ledger has been told."""
    cursors = [attempt["cursor"] for attempt in test.agent.attempts(test.call)]
    return max((each.get("lines_told", 0) for each in cursors if isinstance(each, dict)), default=0)


def forgotten(test: Played) -> str:
    """The renderer forgets the handle while it goes on: nobody may call that done."""
    test.submit(TOOL, {"frames": 12, "seconds": 4, "forget_after_s": 1.5})
    call = test.until_state("ambiguous")
    expect(call["effect"] == "possible", f"its effect is called {call['effect']}")
    expect(call["result"] is None, "it was given a result")
    incidents = test.agent.get(f"/api/v1/incidents?call={test.call}&open=true")["items"]
    expect(len(incidents) == 1, f"it has {len(incidents)} open incidents")
    why = incidents[0]["exhausted_because"]
    expect(why == "handle_lost", f"the incident says {why}")
    return f"ambiguous, {why}, incomplete; an operator is asked"


RESTARTED = Test(
    number="3",
    name="a long render outlives who follows it",
    killed="both workers and the watchdog, kill -9",
    where="parked, with progress told",
    expected="the same handle, progress never falls, one render",
    play=restarted,
    stage=3,
)
FORGOTTEN = Test(
    number="3b",
    name="a long render's handle is lost",
    killed="the renderer's memory of it",
    where="parked, while it renders",
    expected="ambiguous and incomplete, never done",
    play=forgotten,
    stage=2,
)
