"""Test 2 (R156): a write to a known path, broken after it was done, and broken half done."""

import hashlib
from typing import Any
from uuid import uuid4

from drills.rows.row import Played, Test, expect
from ledger import faults
from ledger.faults import Order

TOOL = "sandbox.write_artifact"
TEXT = "A text that is long enough to be cut in two.\n" * 200
SETTLE_PAUSE_S = 3.0  # long enough to name the call to the point before it is passed


def after_it(test: Played) -> str:
    """The worker dies with the outcome in hand; the world is asked, nothing is written twice."""
    path = f"{uuid4().hex}.txt"
    test.submit(TOOL, {"path": path, "text": TEXT, "pause_after_s": SETTLE_PAUSE_S})
    faults.place(
        test.stack.faults,
        Order(number=2, at="before_result_write", deed="kill", call=test.hex()),
    )
    call = test.settled()
    taken = [note for note in faults.stood(test.stack.faults) if note["call"] == test.hex()]
    expect(len(taken) == 1, "nobody was killed")
    return _whole(test, call, path)


def half_done(test: Played) -> str:
    """The tool dies with half a file on disk; the next attempt writes all of it."""
    path = f"{uuid4().hex}.txt"
    test.submit(TOOL, {"path": path, "text": TEXT, "half": True})
    call = test.settled()
    expect(call["attempts_used"] == 2, f"it took {call['attempts_used']} attempts")
    return _whole(test, call, path)


def _whole(test: Played, call: dict[str, Any], path: str) -> str:
    found = test.stack.world.artifact(path)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    expect(call["state"] == "succeeded", f"it settled as {call['state']}: {call['error']}")
    expect(found == TEXT.encode(), "the artifact is not the whole text")
    expect(call["effect"] == "happened", f"its effect is called {call['effect']}")
    return f"one artifact, sha256 {digest[:12]}, {call['attempts_used']} attempt(s) under one key"


KILLED = Test(
    number="2",
    name="a write is interrupted after it was done",
    killed="the attempt's worker, kill -9",
    where="after the file appeared, before the result is recorded",
    expected="one artifact with the same digest, no second write of another",
    play=after_it,
    stage=1,
)
HALF = Test(
    number="2b",
    name="a write is interrupted half done",
    killed="the tool itself, kill -9",
    where="half of the temporary file written",
    expected="half a file is never seen; the repeat writes all of it",
    play=half_done,
    stage=1,
)
