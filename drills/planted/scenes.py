"""Directed scenes: each is green on the product, and red with the bug it was written for."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from drills.agent import Refused
from drills.operator import LOCKED, Operator
from drills.rows.row import NotAsExpected, Played, expect
from drills.rows.send import descendants
from drills.waits import until
from ledger import faults
from ledger.faults import Order
from standalone import pids

MAIL, PAY, WRITE = "sandbox.send_mail", "sandbox.pay", "sandbox.write_artifact"
NAMED_PAUSE_S = 3.0  # long enough to name the call to a point before it is passed
START_TO_CLOSE_S = 12.0
NOTICED_S = 8.0
_numbers = itertools.count(1)
LIMIT_S = 25.0
IN_FLIGHT_S = 4.0
# Of the workspace `swift`: a person decides over mails, a probe over payments.
POLICIES: Mapping[str, dict[str, Any]] = {
    MAIL: {"probe": None, "timeouts": {"start_to_close_s": START_TO_CLOSE_S},
           "in_flight_grace_s": 2.0},
    PAY: {"probe": {"authoritative": True}, "timeouts": {}, "in_flight_grace_s": IN_FLIGHT_S},
}  # fmt: skip


def _mail(test: Played, **pauses: float) -> None:
    test.submit(MAIL, {"to": "ada@example.com", "subject": uuid4().hex, "body": "Hi.", **pauses})


def _order(test: Played, deed: str, at: str, *, seconds: float = 0.0) -> None:
    """Leave an order for whoever passes a point with this test's call."""
    number, call = next(_numbers), test.hex()
    order = Order(number=number, at=at, deed=deed, seconds=seconds, call=call)
    faults.place(test.stack.faults, order)


def _taken(test: Played, at: str) -> int:
    """Wait for who took the order for our call; return the pid."""

    def note() -> dict[str, Any] | None:
        notes = faults.stood(test.stack.faults)
        return next((n for n in notes if (n["at"], n["call"]) == (at, test.hex())), None)

    found: dict[str, Any] = until(note, f"somebody stands at {at}", LIMIT_S)
    return int(found["pid"])


def _mails(test: Played, wanted: int) -> None:
    found = test.stack.world.mails(test.call)
    expect(found == wanted, f"the world has {found} mails instead of {wanted}")


def _person(test: Played) -> Operator:
    return Operator(test.stack.person(), lambda tool, call: test.stack.world.seen_of(tool, call))


def _in(test: Played, limit_s: float, *states: str) -> dict[str, Any]:
    """The call, once it is in one of these states; settled as anything else is a finding."""

    def found() -> dict[str, Any] | None:
        call = test.agent.call(test.call)
        if call["settled"] and call["state"] not in states:
            raise NotAsExpected(f"it settled as {call['state']}, effect {call['effect']}")
        return call if call["state"] in states else None

    return until(found, f"the call is {' or '.join(states)}", limit_s)  # type: ignore[no-any-return]


def stopped_twin(test: Played) -> str:
    """Launcher and tool wake after the repeat: they must be dead by then."""
    person = _person(test)
    _mail(test, pause_after_cross_s=2.0)
    test.until_phase("after_cross")
    holder = test.agent.holder(test.call)
    below = descendants(holder)
    test.stack.freeze(holder, *below)
    _in(test, LIMIT_S, "ambiguous")
    person.deny_when_unlocked(test.call, MAIL, then="repeat", limit_s=LIMIT_S)
    _in(test, LIMIT_S, "succeeded")
    test.stack.thaw(*below)
    until(
        lambda: not any(map(pids.alive, below)) or test.stack.world.mails(test.call) > 1,
        "what was stopped has died or acted",
        LIMIT_S,
    )
    test.stack.thaw(holder)
    _mails(test, 1)
    return "one mail; what was stopped was dead before it could wake"


def late_result(test: Played) -> str:
    """A holder wakes with the outcome in hand, after its lease: evidence, and adopted."""
    _mail(test, pause_after_effect_s=NAMED_PAUSE_S)
    _order(test, "stop", "before_result_write")
    holder = _taken(test, "before_result_write")
    _in(test, LIMIT_S, "ambiguous", "interrupted")
    until(lambda: "fence_lost" in test.kinds(), "the fence is taken", LIMIT_S)
    test.stack.thaw(holder)
    _in(test, LIMIT_S, "succeeded")
    kinds = test.kinds()
    expect("late_result" in kinds and "adopted" in kinds, f"it settled by way of {kinds}")
    _mails(test, 1)
    return "the late result was kept as evidence and adopted"


def zombie_crossing(test: Played) -> str:
    """A holder wakes before its crossing, while the next attempt is at work."""
    _mail(test, pause_before_cross_s=NAMED_PAUSE_S, pause_after_effect_s=6.0)
    _order(test, "stop", "before_crossing")
    holder = _taken(test, "before_crossing")
    until(lambda: "crossed" in test.kinds(), "the next attempt crosses", LIMIT_S)
    test.stack.thaw(holder)
    _in(test, LIMIT_S, "succeeded")
    crossed = [each["fence"] for each in test.agent.events(test.call) if each["kind"] == "crossed"]
    expect(crossed == [2], f"the attempts {crossed} crossed")
    _mails(test, 1)
    return "only the attempt that held the call crossed"


def early_denial(test: Played) -> str:
    """A person denies before the attempt is proven dead."""
    person = _person(test)
    _mail(test, pause_before_cross_s=NAMED_PAUSE_S)
    _order(test, "kill", "after_crossing")
    _in(test, LIMIT_S, "ambiguous")
    said = person.deny(test.call, MAIL, then="close")
    expect((said.code, said.word) == (409, LOCKED), f"the denial was answered {said.code}")
    said = person.deny_when_unlocked(test.call, MAIL, then="close", limit_s=LIMIT_S)
    expect(said.accepted, f"the denial was answered {said.code} {said.word} after its unlock")
    return "the denial was locked, then accepted"


def lost_doorbell(test: Played) -> str:
    """The broker is gone while a call is recorded: it is rung again."""
    test.stack.valkey.kill()
    try:
        test.submit(WRITE, {"path": f"{uuid4().hex}.txt", "text": "Hello."})
    finally:
        # What was popped in its last second before the kill would come back from its log as a
        # ring, before anybody could flush it.
        for log in test.stack.valkey.data_folder.glob("appendonlydir/*"):
            log.unlink()
        test.stack.valkey.start()
    _in(test, LIMIT_S, "succeeded")
    return "rung again and done"


def silent_worker(test: Played) -> str:
    """A worker dies: its call is flagged in time."""
    _mail(test, pause_before_cross_s=NAMED_PAUSE_S)
    _order(test, "kill", "after_crossing")
    _taken(test, "after_crossing")
    _in(test, NOTICED_S, "interrupted", "ambiguous")
    return "flagged in time"


def killed_after_its_effect(test: Played) -> str:
    """The tool dies after it sent: a person is asked, nothing is sent again."""
    _mail(test, pause_after_effect_s=NAMED_PAUSE_S)
    _order(test, "kill", "after_effect")
    _taken(test, "after_effect")
    call = _in(test, LIMIT_S, "ambiguous")
    events = test.agent.events(test.call)
    broke = [each["facts"]["error"] for each in events if each["kind"] == "step_failed"]
    expect(not broke, f"a step of recovery was refused: {broke[:1]}")
    expect(call["attempts_used"] == 1, f"it took {call['attempts_used']} attempts")
    _mails(test, 1)
    return "ambiguous after one attempt and one mail"


def hung_after_its_effect(test: Played) -> str:
    """The tool sent and stays silent until start-to-close: that is no failure."""
    _mail(test, pause_after_effect_s=5 * START_TO_CLOSE_S)
    call = _in(test, START_TO_CLOSE_S + LIMIT_S, "ambiguous")
    expect(call["cause"] == "hang", f"its cause is {call['cause']}")
    _mails(test, 1)
    return "ambiguous, cause hang"


def one_key(test: Played) -> str:
    """Both attempts of a write carry one key."""
    test.submit(WRITE, {"path": f"{uuid4().hex}.txt", "text": "Hello. " * 99, "half": True})
    call = _in(test, LIMIT_S, "succeeded")
    broken = test.stack.desk.ask("verify", calls=[test.hex()])
    expect(not broken, broken[0] if broken else "")
    return f"{call['attempts_used']} attempts under one key"


def reused_key(test: Played) -> str:
    """The same key for something else is refused."""
    key = {"Idempotency-Key": uuid4().hex}
    said = test.agent.post("/api/v1/calls", {"tool": "sandbox.tally", "arguments": {}}, **key)
    test.call = said["id"]
    other = {"tool": "sandbox.lookup", "arguments": {"name": "address"}}
    try:
        answer = test.agent.post("/api/v1/calls", other, **key)
    except Refused as refusal:
        expect(refusal.code == 409, f"it was answered {refusal.code}")
        return "refused with 409"
    raise NotAsExpected(f"it was taken for {answer['id']}")


def ordinary_send(test: Played) -> str:
    """Nothing is broken: one mail, one event for each change."""
    _mail(test)
    _in(test, LIMIT_S, "succeeded")
    broken = test.stack.desk.ask("verify", calls=[test.hex()])
    expect(not broken, broken[0] if broken else "")
    _mails(test, 1)
    return "one mail, every change with its event"


def lost_commits(test: Played) -> str:
    """The crossing's commits never arrive: the tool must not act on hope."""
    link = test.stack.link
    if link is None:
        raise NotAsExpected("this stack has no link that could be cut")
    test.agent = test.stack.agent("default")  # its lease outlasts the commits that are tried
    _mail(test, pause_before_cross_s=NAMED_PAUSE_S)
    _order(test, "wait", "before_crossing", seconds=NAMED_PAUSE_S)
    holder = _taken(test, "before_crossing")
    # A cut holder looks dead: the watchdog must not take the fence before all tries are over.
    watchdog = test.stack.children["watchdog"].pid
    test.stack.freeze(watchdog)
    link.lose_commit(EVERY_COMMIT)
    until(
        lambda: test.stack.world.mails(test.call) or not pids.children(holder),
        "the tool has acted or is dead",
        LIMIT_S,
    )
    link.lose_no_more()
    test.stack.thaw(watchdog)
    call = _in(test, 2 * LIMIT_S, "succeeded")
    expect(call["effect"] == "happened", f"its effect is called {call['effect']}")
    _mails(test, 1)
    return "one mail, of the attempt whose crossing is known"


EVERY_COMMIT = 10_000


def early_negative(test: Played) -> str:
    """A probe finds nothing yet: it is believed once the attempt is proven dead."""
    test.submit(PAY, {"payee": "p", "amount_cents": 1, "currency": "EUR",
                      "pause_after_cross_s": 2.0})  # fmt: skip
    test.until_phase("after_cross")
    holder = test.agent.holder(test.call)
    test.stack.freeze(holder, *descendants(holder))
    until(lambda: "cleared_for_retry" in test.kinds(), "it is cleared for a repeat", 2 * LIMIT_S)
    test.stack.thaw(holder)
    at = {each["kind"]: datetime.fromisoformat(each["at"]) for each in test.agent.events(test.call)}
    expect("proven_dead" in at, "it was cleared for a repeat before its death was proven")
    waited_s = (at["cleared_for_retry"] - at["proven_dead"]).total_seconds()
    expect(waited_s >= IN_FLIGHT_S, f"it was cleared {waited_s:.1f} s after the proof of its death")
    _in(test, LIMIT_S, "succeeded")
    found = test.stack.world.payments(test.call)
    expect(found == 1, f"the world has {found} payments")
    return "cleared after the proof of death and the grace; one payment"


def compacted_while_it_crosses(test: Played) -> str:
    """A call crosses between the look at the cuts and the commit: its line says so."""
    sender = _session_with(test, "toolu_0", pause_before_cross_s=NAMED_PAUSE_S,
                           pause_after_effect_s=NAMED_PAUSE_S)  # fmt: skip
    test.agent.post(f"{sender.path}/turns/{sender.turn}/end", {"closed_as": "interrupted"})
    cuts = test.agent.get(f"{sender.path}/transcript/cuts")
    until(lambda: "crossed" in test.kinds(), "the call crosses", LIMIT_S)
    cut = {name: cuts["allowed"][name] for name in ("turn", "position")}
    body = {"token": cuts["token"], "cut": cut, "summary": "A mail is under way."}
    made = test.agent.post(f"{sender.path}/compactions", body)
    said = [(line["call"], line["effect"]) for line in made["carry_over"]]
    expect(said == [(test.call, "possible")], f"it carried over {said}")
    return "the line says that the effect is possible"


def handed_to_another_session(test: Played) -> str:
    """Two open calls are offered and taken: both change hands."""
    sender = _session_with(test, "toolu_0", pause_after_cross_s=NAMED_PAUSE_S)
    other = test.agent.submit(
        MAIL, {"to": "ben@example.com", "subject": uuid4().hex, "body": "Hi.",
               "pause_after_cross_s": NAMED_PAUSE_S},
        session=sender.session, turn=sender.turn, position=1, tool_call_id="toolu_1",
    )  # fmt: skip
    receiver = test.agent.post("/api/v1/sessions", {"label": "receiver"})["id"]
    offer = {"to": {"agent": "agent", "session": receiver}, "grounds": "A drill."}
    hand_off = test.agent.post(f"{sender.path}/handoffs", offer)["id"]
    said = test.agent.post(f"/api/v1/handoffs/{hand_off}/acceptance", {"session": receiver})
    expect(said["calls"] == [test.call, other], f"these changed hands: {said['calls']}")
    return "both calls changed hands"


@dataclass(frozen=True, slots=True)
class Sender:
    """A session with a mail under way, and its open turn."""

    session: str
    turn: str

    @property
    def path(self) -> str:
        return f"/api/v1/sessions/{self.session}"


def _session_with(test: Played, tool_call_id: str, **pauses: float) -> Sender:
    session = test.agent.post("/api/v1/sessions", {"label": uuid4().hex[:8]})["id"]
    turn = test.agent.post(f"/api/v1/sessions/{session}/turns", {"key": "one"})["id"]
    mail = {"to": "ada@example.com", "subject": uuid4().hex, "body": "Hi.", **pauses}
    test.submit(MAIL, mail, session=session, turn=turn, tool_call_id=tool_call_id)
    return Sender(session, turn)


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene; `alone` where it breaks what the others need."""

    play: Callable[[Played], str]
    alone: bool = False

    @property
    def name(self) -> str:
        return self.play.__name__


SCENES: Mapping[str, Scene] = {
    scene.name: scene
    for scene in (
        Scene(stopped_twin),
        Scene(late_result),
        Scene(zombie_crossing),
        Scene(early_denial),
        Scene(silent_worker),
        Scene(killed_after_its_effect),
        Scene(hung_after_its_effect),
        Scene(one_key),
        Scene(reused_key),
        Scene(ordinary_send),
        Scene(early_negative),
        Scene(compacted_while_it_crosses),
        Scene(handed_to_another_session),
        Scene(lost_doorbell, alone=True),
        Scene(lost_commits, alone=True),
    )
}
