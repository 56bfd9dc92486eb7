"""Test 1 (R155): a read, its worker killed between the world's reply and the settlement."""

from drills.rows.row import Played, Test, expect
from ledger import faults
from ledger.faults import Order
from standalone import pids

TOOL = "sandbox.tally"


def play(test: Played) -> str:
    """The read runs again: two look-ups in the world, one result in the ledger."""
    faults.place(
        test.stack.faults, Order(number=1, at="before_result_write", deed="kill", tools=(TOOL,))
    )
    worker = test.stack.children["reads"].pid
    test.submit(TOOL, {})
    call = test.settled()
    expect(not pids.alive(worker), "the worker that should have been killed lives")
    expect(call["state"] == "succeeded", f"it settled as {call['state']}: {call['error']}")
    runs, results = test.stack.world.runs()[test.hex()], test.kinds().count("succeeded")
    expect(runs == call["attempts_used"] == 2, f"it ran {runs} times in {call['attempts_used']}")
    expect(results == 1, f"it was settled {results} times")
    return f"ran {runs} times, settled once as {call['state']}, effect {call['effect']}"


KILLED = Test(
    number="1",
    name="a read is interrupted",
    killed="the reads worker, kill -9",
    where="after the world's reply, before the result is recorded",
    expected="it runs again, and one result is recorded",
    play=play,
    stage=2,
)
