"""Test 5 (R159): a device code that nobody answers is closed at its lifetime, alone."""

import time
from datetime import datetime
from uuid import uuid4

from drills.rows.row import Played, Test, expect

LIFETIME_S = 6.0
SLACK_S = 2.0
OTHERS_P95_S = 2.0
PAUSE_S = 0.2


def play(test: Played) -> str:
    """The sign-in ends by itself; the session's other calls and the turn never wait for it."""
    session = test.agent.post("/api/v1/sessions", {"label": "sign-in"})["id"]
    turn = test.agent.post(f"/api/v1/sessions/{session}/turns", {"key": "one"})["id"]
    place = {"session": session, "turn": turn}
    asked = {"expires_in_s": LIFETIME_S, "interval_s": 1}
    test.submit("sandbox.device_login", asked, tool_call_id="sign-in", **place)
    others = _others(test, place)
    call = test.settled()
    end = f"/api/v1/sessions/{session}/turns/{turn}/end"
    closed = test.agent.post(end, {"closed_as": "answered"})["open"]
    lived_s = _lived_s(test)
    slowest_s = others[int(len(others) * 0.95)]
    expect(closed is False, "the turn did not end")
    expect(call["state"] in ("expired", "failed"), f"it settled as {call['state']}")
    expect(abs(lived_s - LIFETIME_S) <= SLACK_S, f"it lived {lived_s:.1f} s of {LIFETIME_S:g} s")
    expect(slowest_s < OTHERS_P95_S, f"p95 of the others was {slowest_s:.2f} s")
    return (
        f"{call['state']} after {lived_s:.1f} s; turn ended; "
        f"p95 of {len(others)} others {slowest_s:.2f} s"
    )


def _lived_s(test: Played) -> float:
    """Seconds from the code, which the handle is, to the end of the call."""
    events = [each for each in test.agent.events(test.call) if each["kind"] != "proven_dead"]
    given = next(each for each in events if each["kind"] == "handle_stored")
    ends = [datetime.fromisoformat(each["at"]).timestamp() for each in (given, events[-1])]
    return ends[1] - ends[0]


def _others(test: Played, place: dict[str, str]) -> list[float]:
    """Seconds from submit to settled of other calls of the turn, in order of size."""
    took = []
    until = time.monotonic() + LIFETIME_S - 1
    while time.monotonic() < until:
        began = time.monotonic()
        read = test.agent.submit(
            "sandbox.lookup", {"name": "opening-hours"}, tool_call_id=uuid4().hex, **place
        )
        expect(test.agent.call(read, wait_s=10)["settled"], "another call of the turn hung")
        took.append(time.monotonic() - began)
        time.sleep(PAUSE_S)
    return sorted(took)


UNANSWERED = Test(
    number="5",
    name="a device code is never answered",
    killed="nothing: the provider stays silent",
    where="parked, waiting for a person",
    expected=f"closed at {LIFETIME_S:g} s +- {SLACK_S:g} s; the turn goes on",
    play=play,
    stage=1,
)
