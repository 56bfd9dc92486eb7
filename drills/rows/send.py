"""Test 6: an irreversible send, broken at its boundary by death and by a stop."""

import re
from typing import Any
from uuid import uuid4

from drills.operator import LOCKED, Operator
from drills.rows.row import LIMIT_S, Played, Test, expect
from drills.waits import until
from ledger import faults
from ledger.faults import Order
from standalone import pids

TOOL = "sandbox.send_mail"
NAMED_PAUSE_S = 3.0  # long enough to name the call to the point before it is passed
STOPPED_PAUSE_S = 3.0


def killed(test: Played) -> str:
    """The worker dies once the crossing is committed; a person denies, and one mail is sent."""
    test.submit(TOOL, _mail(pause_before_cross_s=NAMED_PAUSE_S))
    faults.place(
        test.stack.faults, Order(number=6, at="after_crossing", deed="kill", call=test.hex())
    )
    return _denied_and_sent_once(test)


def stopped(test: Played) -> str:
    """Everything of the attempt is stopped; its fence kills it, and who wakes adds nothing."""
    test.submit(TOOL, _mail(pause_after_cross_s=STOPPED_PAUSE_S))
    test.until_phase("after_cross")
    holder = test.agent.holder(test.call)
    tree = [holder, *descendants(holder)]
    test.stack.freeze(*tree)
    said = _denied_and_sent_once(test)
    test.stack.thaw(*tree)
    until(lambda: not any(map(pids.alive, tree[1:])), "what was stopped is dead", LIMIT_S)
    mails = test.stack.world.mails(test.call)
    expect(mails == 1, f"after the stopped one woke there are {mails} mails")
    return f"{said}; the one that woke added none"


def _mail(**pauses: float) -> dict[str, Any]:
    return {"to": "ada@example.com", "subject": uuid4().hex, "body": "Hello.", **pauses}


def _denied_and_sent_once(test: Played) -> str:
    person = Operator(test.stack.person(), lambda tool, call: test.stack.world.mails(call))
    test.until_state("ambiguous")
    expect(test.stack.world.mails(test.call) == 0, "it was sent before it was denied")
    early = person.deny(test.call, TOOL)
    expect(
        (early.code, early.word) == (409, LOCKED),
        f"a denial before its death is proven was answered {early.code} {early.word}",
    )
    expect(bool(re.search("second|dead|unlock", str(early.body))), "the lock names no countdown")
    said = person.deny_when_unlocked(test.call, TOOL, then="repeat", limit_s=LIMIT_S)
    expect(said.accepted, f"the denial was answered {said.code} {said.body}")
    call = test.settled()
    mails = test.stack.world.mails(test.call)
    expect(call["state"] == "succeeded", f"it settled as {call['state']}: {call['error']}")
    expect(mails == 1, f"the world has {mails} mails")
    return "ambiguous; the denial was locked until its death was proven; then one mail"


def descendants(pid: int) -> list[int]:
    """Every process below one, as of now."""
    found = pids.children(pid)
    return [*found, *(each for child in found for each in descendants(child))]


EXPECTED = "ambiguous; a denial is locked until it is dead; then exactly one mail"
KILLED = Test(
    number="6",
    name="an irreversible send is killed at its boundary",
    killed="the attempt's worker, kill -9",
    where="the crossing committed, nothing sent",
    expected=EXPECTED,
    play=killed,
    stage=1,
)
STOPPED = Test(
    number="6b",
    name="an irreversible send is stopped at its boundary",
    killed="worker, launcher and tool, SIGSTOP",
    where="the crossing committed, nothing sent",
    expected=f"{EXPECTED}; who wakes adds none",
    play=stopped,
    stage=1,
)
