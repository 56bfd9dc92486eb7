"""Test 4 (R158): killed inside a compaction, then inside a hand-off, with three open calls."""

import itertools
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from drills.rows.row import LIMIT_S, Played, Test, expect
from drills.waits import until
from ledger import faults
from ledger.faults import Order

MAIL, READ = "sandbox.send_mail", "sandbox.lookup"
AGENT = "agent"  # of every workspace of a drill
BINDING = {"working_directory": "/srv/books", "host": "box-1", "model": "m-1"}
MAIL_PAUSE_S = 55.0  # crossed for longer than both breaks take; cancelled when they are over
PATIENT_S = 120.0  # the read waits for a worker that stands still meanwhile
SUMMARY = "The guests were told; the opening hours were asked for."
_numbers = itertools.count(40)


class Case:
    """A session with three open calls: one scheduled, one crossed, one held by a question."""

    def __init__(self, test: Played) -> None:
        self.test, self.agent = test, test.agent
        self.session = self._session("compacted")
        self.receiver = self._session("receives")
        self.sender = f"/api/v1/sessions/{self.session}"
        done = self._turn("done")
        self.agent.post(f"{self.sender}/turns/{done}/end", {"closed_as": "answered"})
        self.turn = self._turn("open")

    def _session(self, label: str) -> str:
        return str(self.agent.post("/api/v1/sessions", {"label": label, **BINDING})["id"])

    def _turn(self, key: str) -> str:
        return str(self.agent.post(f"{self.sender}/turns", {"key": key})["id"])

    def submit(self, tool: str, arguments: dict[str, Any], position: int) -> str:
        """Record a call of the open turn's reply."""
        return self.agent.submit(
            tool, arguments, session=self.session, turn=self.turn,
            position=position, tool_call_id=f"toolu_{position}",
        )  # fmt: skip

    def begin(self) -> list[str]:
        """Three open calls behind a finished turn; their ids, in their order."""
        mail = {"to": "ada@example.com", "subject": uuid4().hex, "body": "Come.",
                "pause_after_cross_s": MAIL_PAUSE_S}  # fmt: skip
        self.test.call = crossed = self.submit(MAIL, mail, 0)
        self.test.until_phase("after_cross")
        paused = self.submit(MAIL, mail, 1)
        scheduled = self.submit(READ, {"name": "opening-hours"}, 2)
        return [crossed, paused, scheduled]

    def cuts(self) -> dict[str, Any]:
        """Where the session may be cut, as the server says once it is there."""
        return self.awaited(lambda: self.agent.get(f"{self.sender}/transcript/cuts"))

    def awaited(self, ask: Callable[[], Any]) -> dict[str, Any]:
        """An answer, asked for until a server that was killed is there again."""

        def tried() -> Any:
            try:
                return ask()
            except OSError:
                return None

        return until(tried, "the server answers again", LIMIT_S)  # type: ignore[no-any-return]

    def killed_at(self, point: str, act: Callable[[], Any]) -> None:
        """Do something once, at whose point the server is killed."""
        number = next(_numbers)
        faults.place(self.test.stack.faults, Order(number=number, at=point, deed="kill"))
        try:
            act()
        except OSError:
            taken = {each["number"] for each in faults.stood(self.test.stack.faults)}
            expect(number in taken, f"the server broke, and not at {point}")
            return
        expect(False, f"nobody was killed at {point}")

    def binding(self, session: str) -> dict[str, Any]:
        """What a session is bound to."""
        found = self.agent.get(f"/api/v1/sessions/{session}")["binding"]
        return {name: found[name] for name in BINDING}


def play(test: Played) -> str:
    """Either side of both breaks is whole: the same place, the same three calls."""
    test.stack.desk.ask("policies", workspace="swift", tools=[READ],
                        timeouts={"schedule_to_start_s": PATIENT_S})  # fmt: skip
    reads = test.stack.children["reads"].pid
    test.stack.freeze(reads)
    try:
        case = Case(test)
        wanted = case.begin()
        questions = _compaction(case, wanted)
        _hand_off(case, wanted, questions)
    finally:
        test.stack.thaw(reads)
    return _settled(test, wanted)


def _compaction(case: Case, wanted: list[str]) -> list[Any]:
    """Killed before its commit, nothing is changed; asked again, every call is carried over."""
    cuts = case.cuts()
    expect(_calls(cuts["carry_over"]) == wanted, f"to carry over: {_calls(cuts['carry_over'])}")
    body = {"token": cuts["token"], "cut": _place(cuts["allowed"]), "summary": SUMMARY}
    path = f"{case.sender}/compactions"
    case.killed_at("during_compaction", lambda: case.agent.post(path, body))
    after = case.cuts()
    expect(
        (after["version"], _calls(after["carry_over"])) == (cuts["version"], wanted),
        f"a broken compaction changed version {cuts['version']} to {after['version']}",
    )
    made = case.awaited(lambda: case.agent.post(path, body))
    again = case.agent.post(path, body)
    expect(_calls(made["carry_over"]) == wanted, f"carried over: {_calls(made['carry_over'])}")
    expect(made["id"] == again["id"], "asked twice, it was done twice")
    expect(case.binding(case.session) == BINDING, "the compaction changed the binding")
    return [line["questions"] for line in made["carry_over"]]


def _place(cut: dict[str, Any]) -> dict[str, int]:
    return {name: cut[name] for name in ("turn", "position")}


def _hand_off(case: Case, wanted: list[str], questions: list[Any]) -> None:
    """Killed before its commit, the sender has all; asked again, the receiver has all."""
    offer = {"to": {"agent": AGENT, "session": case.receiver}, "grounds": "A drill."}
    path = f"/api/v1/handoffs/{case.agent.post(f'{case.sender}/handoffs', offer)['id']}"
    accept = {"session": case.receiver}
    case.killed_at("during_handoff", lambda: case.agent.post(f"{path}/acceptance", accept))
    broken = case.awaited(lambda: case.agent.get(path))
    expect(
        (broken["state"], _calls(broken["lines"])) == ("offered", wanted),
        f"after the break it is {broken['state']} with {_calls(broken['lines'])}",
    )
    taken = case.awaited(lambda: case.agent.post(f"{path}/acceptance", accept))
    again = case.agent.post(f"{path}/acceptance", accept)
    expect(
        (taken["state"], _calls(taken["lines"]), again["calls"])
        == ("accepted", wanted, taken["calls"]),
        f"taken over: {_calls(taken['lines'])}",
    )
    asked = [line["questions"] for line in taken["lines"]]
    expect(asked == questions, "a question to a person changed on the way")
    expect(case.binding(case.receiver) == BINDING, "the receiver's binding is another one")
    left = case.cuts()
    expect(not left["carry_over"], f"the sender still has {_calls(left['carry_over'])}")


def _calls(lines: list[dict[str, Any]]) -> list[str]:
    return [str(line["call"]) for line in lines]


def _settled(test: Played, wanted: list[str]) -> str:
    """The new owner asks the mail to stop, before its effect began; the read is done."""
    test.agent.post(f"/api/v1/calls/{test.call}/cancellation", None)
    call = test.settled()
    others = [_outcome(test, each) for each in wanted[1:]]
    mails = test.stack.world.mails(test.call)
    expect(
        (call["state"], call["effect"]) == ("cancelled", "did_not_happen"),
        f"it settled as {call['state']}, effect {call['effect']}",
    )
    expect(others == ["cancelled", "succeeded"], f"the others settled as {others}")
    expect(mails == 0, f"the world has {mails} mails")
    return "three calls on either side of both breaks, the same place; then each was settled once"


def _outcome(test: Played, call_id: str) -> str:
    def settled() -> str:
        call = test.agent.call(call_id)
        return str(call["state"]) if call["settled"] else ""

    return str(until(settled, f"{call_id} settles", LIMIT_S))


KILLED = Test(
    number="4",
    name="break inside a compaction, then a hand-off",
    killed="the web, kill -9, twice",
    where="written and not committed, three calls open: scheduled, crossed, held",
    expected="the next turn has the same binding and every open call",
    play=play,
    stage=4,
)
