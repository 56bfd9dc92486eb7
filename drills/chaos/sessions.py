"""Agents that converse while faults fall: they reply, compact, hand over, and render.

A server that is away is asked again, as the authors of agents are told to do. What it answered is
kept for the checker, and what an agent can see is wrong is a finding at once: a render that our
own validation refuses, a doubled compaction, a hand-off with two owners or none.
"""

import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from drills.agent import Agent, Refused
from drills.chaos.load import ACCEPT_LIMIT_S, AGAIN_S, TOO_MANY
from drills.chaos.relays import Leg, Relay, Reply
from drills.checker import Answered
from drills.report import Finding
from drills.session_checker import Rendered
from ledger.transcripts.profiles import profiles

BINDING = {"working_directory": "/srv/books", "host": "box-1", "model": "m-1"}
FORMAT = "openai-chat"
"""The format of replies and of the renders whose results are compared with the ledger's."""
AGENT = "agent"  # of every workspace of a drill
SUMMARY = "What was asked for so far is under way or done."
AHEAD_S = 0.1
EPOCH = "Clearhouse-Epoch"
UNRENDERABLE, STALE, ENDED = "unrenderable", ("stale_transcript", "cut_expired"), "hand_off_ended"


@dataclass(slots=True)
class Sessions:
    """Every relay of one drill, and what came of it."""

    agent: Agent
    relays: Sequence[Relay]
    answered: list[Answered] = field(default_factory=list)
    rendered: list[Rendered] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    renders: int = 0
    _formats: Any = field(default_factory=lambda: itertools.cycle(profiles()))

    def start(self, begun: Callable[[], int]) -> threading.Thread:
        """Begin in a thread of its own; `begun` tells how many intents of the load were begun."""
        thread = threading.Thread(target=self._run, args=(begun,), name="sessions")
        thread.start()
        return thread

    def _run(self, begun: Callable[[], int]) -> None:
        with ThreadPoolExecutor(len(self.relays)) as pool:
            list(pool.map(lambda relay: self._play(relay, begun), self.relays))

    def _play(self, relay: Relay, begun: Callable[[], int]) -> None:
        while begun() < relay.at:
            time.sleep(AHEAD_S)
        try:
            session = self._open(f"{relay.key}-0")
            for number, leg in enumerate(relay.legs):
                self._leg(session, leg)
                if number + 1 < len(relay.legs):
                    session = self._hand_over(session, f"{relay.key}-{number + 1}", leg.rivals)
        except (OSError, Refused) as refusal:
            self._find("session", f"{relay.key} could not go on: {refusal}.")

    def _find(self, kind: str, sentence: str) -> None:
        self.found.append(Finding(kind=kind, sentence=sentence))

    # --- what an agent does ---

    def _open(self, key: str) -> str:
        path, headers = "/api/v1/sessions", {"Idempotency-Key": key}
        made = insisted(lambda: self.agent.post(path, {"label": key, **BINDING}, **headers))
        self.opened.append(made["id"])
        return str(made["id"])

    def _leg(self, session: str, leg: Leg) -> None:
        base = f"/api/v1/sessions/{session}"
        prompt = {"role": "user", "content": "Go on with the guests."}
        body = {"key": "asked", "format": FORMAT, "message": prompt}
        turn = insisted(lambda: self.agent.post(f"{base}/turns", body))["id"]
        for step, reply in enumerate(leg.replies):
            self._reply(f"{base}/turns/{turn}/replies", step, reply)
            self._compact(base, twice=reply.twice)
            self._render(session, FORMAT)
            self._render(session, next(self._formats))

    def _reply(self, path: str, step: int, reply: Reply) -> None:
        """Record the reply; whoever asked twice was answered with the same calls."""
        body = _as_said(step, reply)
        said = [insisted(lambda: self.agent.post(path, body)) for _ in range(1 + reply.twice)]
        for position in range(len(reply.calls)):
            ids = frozenset(each["calls"][position]["id"] for each in said)
            self.answered.append(Answered(f"{path} {step} {position}", ids))

    def _compact(self, base: str, *, twice: bool) -> None:
        """Cut where the server says it may be, asked anew where the place was no longer good."""
        while True:
            cuts = insisted(lambda: self.agent.get(f"{base}/transcript/cuts"))
            body = {"token": cuts["token"], "cut": _place(cuts["allowed"]), "summary": SUMMARY}
            try:
                made = {self._compaction(base, body) for _ in range(1 + twice)}
            except Refused as refusal:
                if refusal.problem.get("code") in STALE:
                    continue
                raise
            if len(made) > 1:
                self._find("doubled", f"{base} was compacted {len(made)} times by one token.")
            return

    def _compaction(self, base: str, body: dict[str, Any]) -> str:
        return str(insisted(lambda: self.agent.post(f"{base}/compactions", body))["id"])

    def _hand_over(self, sender: str, key: str, rivals: bool) -> str:
        """Offer what is unresolved; one session takes it, also where two of them want it."""
        offer = {"to": {"agent": AGENT}, "grounds": "A drill.", "key": key}
        path = f"/api/v1/sessions/{sender}/handoffs"
        made = insisted(lambda: self.agent.post(path, offer))
        wanting = [self._open(f"{key}-{n}") for n in range(1 + rivals)]
        with ThreadPoolExecutor(len(wanting)) as pool:
            taken = list(pool.map(lambda each: self._accepted(made["id"], each), wanting))
        owners = [each for each, calls in zip(wanting, taken, strict=True) if calls is not None]
        if len(owners) != 1:
            self._find(OWNERS[bool(owners)], f"{made['id']} was taken by {len(owners)} sessions.")
        owner = (owners or wanting)[0]
        self._compare_sides(sender, owner, taken[wanting.index(owner)] or [])
        return owner

    def _accepted(self, hand_off: str, session: str) -> list[str] | None:
        """The calls that this session took over; None where another was faster."""
        path = f"/api/v1/handoffs/{hand_off}/acceptance"
        try:
            said = insisted(lambda: self.agent.post(path, {"session": session}))
        except Refused as refusal:
            if refusal.problem.get("code") == ENDED:
                return None
            raise
        return list(said["calls"])

    def _compare_sides(self, sender: str, owner: str, calls: list[str]) -> None:
        """Nothing unresolved stays with the sender, and all of it is with the owner."""
        left = self._unresolved(sender)
        if left:
            self._find("two_owners", f"After its hand-off {sender} still has {left}.")
        here = self._unresolved(owner)
        for call in sorted(set(calls) - set(here)):
            if not self._is_settled(call):
                self._find("no_owner", f"{call} was handed over to {owner}, which has it not.")

    def _is_settled(self, call: str) -> bool:
        return bool(insisted(lambda: self.agent.call(call))["settled"])

    def _unresolved(self, session: str) -> list[str]:
        path = f"/api/v1/sessions/{session}/transcript/cuts"
        return [line["call"] for line in insisted(lambda: self.agent.get(path))["carry_over"]]

    # --- what a provider would be sent ---

    def _render(self, session: str, format_: str) -> set[str]:
        """Render, and let our own validation judge it; of our format the calls it tells of."""
        path = f"/api/v1/sessions/{session}/transcript?format={format_}"
        found = insisted(lambda: self._transcript(path))
        if found is None:
            self._find("refused_render", f"{session} could not be rendered for {format_}.")
            return set()
        wanted = {"format": format_, "profile": format_, "transcript": found["body"]}
        judged = insisted(lambda: self.agent.post("/api/v1/transcripts/validation", wanted))
        self.renders += 1
        if not judged["sound"]:
            faults = judged["profiles"][format_]["predicted"]
            self._find("refused_render", f"{session} for {format_} is refused: {faults[:1]}.")
        if format_ != FORMAT:
            return set()
        rendered = Rendered(session, found["body"], found["manifest"])
        self.rendered.append(rendered)
        return rendered.tells_of()

    def _transcript(self, path: str) -> Any:
        """A rendered session; None where the server says that it may not be given out."""
        code, said = self.agent.ask("GET", path)
        if code >= 500 and (said or {}).get("code") != UNRENDERABLE:
            raise ConnectionError(f"The server answered {code}: ask again.")
        return said if code < 400 else None

    def tell(self) -> dict[str, set[str]]:
        """Show each session what it was not shown yet; which calls its transcript tells of then."""
        return {session: self._told(session) for session in list(self.opened)}

    def _told(self, session: str) -> set[str]:
        base = f"/api/v1/sessions/{session}"
        try:
            epoch = {EPOCH: str(self.agent.get(base)["binding"]["epoch"])}
            turn = self._last_turn(base, epoch)
            offer = {"turn": turn, "format": FORMAT}
            made = self.agent.post(f"{base}/deliveries", offer, **epoch)
            if made["id"]:
                self.agent.post(f"/api/v1/deliveries/{made['id']}/acknowledgement", None, **epoch)
        except (OSError, Refused) as refusal:
            self._find("session", f"{session} could not be told what it missed: {refusal}.")
        for name in profiles():
            if name != FORMAT:
                self._render(session, name)
        return self._render(session, FORMAT)

    def _last_turn(self, base: str, epoch: dict[str, str]) -> str:
        """A turn of its own for what is shown at the end; the one before it is closed."""
        known = self.agent.post(f"{base}/turns", {"key": "asked"}, **epoch)
        if known["closed_at"] is None:
            path = f"{base}/turns/{known['id']}/end"
            self.agent.post(path, {"closed_as": "answered"}, **epoch)
        return str(self.agent.post(f"{base}/turns", {"key": "told"}, **epoch)["id"])


OWNERS = {False: "no_owner", True: "two_owners"}


def _as_said(step: int, reply: Reply) -> dict[str, Any]:
    """A reply as its provider gives it; names there have no dots."""
    names = {each.tool.partition(".")[2]: each.tool for each in reply.calls}
    calls = [
        {
            "id": f"toolu_{step}_{position}",
            "type": "function",
            "function": {
                "name": each.tool.partition(".")[2],
                "arguments": json.dumps(dict(each.arguments)),
            },
        }
        for position, each in enumerate(reply.calls)
    ]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"format": FORMAT, "reply": said, "model_step": step, "names": names}


def _place(cut: dict[str, Any]) -> dict[str, int]:
    return {name: cut[name] for name in ("turn", "position")}


def insisted(ask: Callable[[], Any]) -> Any:
    """An answer, asked for until the server is there and has patience. Raises Refused, OSError."""
    ends = time.monotonic() + ACCEPT_LIMIT_S
    while True:
        try:
            return ask()
        except OSError:
            if time.monotonic() >= ends:
                raise
        except Refused as refusal:
            if refusal.code != TOO_MANY or time.monotonic() >= ends:
                raise
        time.sleep(AGAIN_S)
