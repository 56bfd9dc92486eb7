"""What became of a drill's sessions: calls lost on the way, results in the wrong place, owners.

Pure: it is given what the ledger says at the end, what was rendered meanwhile, and what the last
transcript of each session tells.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drills.checker import LedgerCall
from drills.report import Finding
from ledger import notices
from ledger.transcripts.profiles import CAP_BYTES

REAL = "real"
CORRECTED = re.compile(r"Correction about call (call_[0-9a-f]{32})\.")
NOW = " Now known: The tool's result: "


@dataclass(frozen=True, slots=True)
class Rendered:
    """A session as it was given out for openai-chat: its messages, and one line for each call."""

    session: str
    messages: Sequence[Mapping[str, Any]]
    manifest: Sequence[Mapping[str, Any]]

    def tells_of(self) -> set[str]:
        """The calls that stand in it with an answer, and those that a correction tells of."""
        return {line["call"] for line in self.manifest if line["call"]} | set(self.corrections())

    def corrections(self) -> dict[str, str]:
        """The text of the last correction about each call; one message may hold several."""
        said = "".join(_text(each) for each in self.messages if each["role"] == "user")
        _, *found = CORRECTED.split(said)
        return dict(zip(found[::2], found[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction of the ledger. Sessions and calls are named by their 32 hex digits."""

    id: str
    session: str
    at: float
    carried: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HandedOver:
    """An accepted hand-off of the ledger, and the calls that went with it."""

    id: str
    sender: str
    receiver: str
    at: float
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsSeen:
    """The ledger's compactions and hand-offs in their order; `read` makes them of the desk's."""

    compacted: Sequence[Compacted] = ()
    handed_over: Sequence[HandedOver] = ()

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> "SessionsSeen":
        """Read the answer of the desk's verb `sessions`."""
        return cls(
            compacted=[
                Compacted(**row | {"carried": tuple(row["carried"])}) for row in said["compacted"]
            ],
            handed_over=[
                HandedOver(**row | {"calls": tuple(row["calls"])}) for row in said["handed_over"]
            ],
        )


def findings(
    seen: SessionsSeen,
    calls: Mapping[str, LedgerCall],
    rendered: Iterable[Rendered],
    told: Mapping[str, Iterable[str]],
) -> list[Finding]:
    """Everything that is wrong. `told` are the calls that each session's last transcript names."""
    owned = _Owners(seen.handed_over, calls)
    return [
        *_lost(seen, calls, owned),
        *_owned_otherwise(seen.handed_over, calls, owned),
        *_untold(seen, calls, owned, {_digits(each): set(told[each]) for each in told}),
        *(finding for each in rendered for finding in _misplaced(each, calls)),
    ]


class _Owners:
    """Who owned a call at an instant, by the hand-offs in their order."""

    def __init__(self, handed: Iterable[HandedOver], calls: Mapping[str, LedgerCall]) -> None:
        self._first = {call.id: call.session for call in calls.values()}
        self.taken: dict[str, list[HandedOver]] = defaultdict(list)
        for each in sorted(handed, key=lambda each: each.at):
            for call in each.calls:
                self.taken[call].append(each)

    def of(self, call: str, before: float = float("inf")) -> str:
        past = [each.receiver for each in self.taken[call] if each.at < before]
        return past[-1] if past else self._first.get(call, "")


def _open_then(
    session: str, at: float, calls: Mapping[str, LedgerCall], owners: _Owners
) -> set[str]:
    """The calls that a session owned and that were not settled at an instant."""
    return {
        call.id
        for call in calls.values()
        if owners.of(call.id, at) == session
        and call.events
        and call.events[0][1] < at
        and (call.settled_at is None or call.settled_at > at)
    }


def _lost(
    seen: SessionsSeen, calls: Mapping[str, LedgerCall], owners: _Owners
) -> Iterator[Finding]:
    for each in seen.compacted:
        for call in _open_then(each.session, each.at, calls, owners) - set(each.carried):
            yield _found("lost_by_compaction", call, f"Compaction {each.id} does not carry it.")


def _owned_otherwise(
    handed: Iterable[HandedOver], calls: Mapping[str, LedgerCall], owners: _Owners
) -> Iterator[Finding]:
    for each in handed:
        for call in _open_then(each.sender, each.at, calls, owners) - set(each.calls):
            yield _found("no_owner", call, f"Hand-off {each.id} left it behind.")
        for call in each.calls:
            before = owners.of(call, each.at)
            if before != each.sender:
                sentence = f"Hand-off {each.id} gave it away, and it belonged to {before}."
                yield _found("two_owners", call, sentence)


def _untold(
    seen: SessionsSeen,
    calls: Mapping[str, LedgerCall],
    owners: _Owners,
    told: Mapping[str, set[str]],
) -> Iterator[Finding]:
    """What was carried over or handed over, and never came back into a transcript."""
    passed = {call: "compaction" for each in seen.compacted for call in each.carried}
    passed |= {call: "hand-off" for each in seen.handed_over for call in each.calls}
    for call, way in passed.items():
        owner = owners.of(call)
        if call in calls and f"call_{call}" not in told.get(owner, set()):
            kind = "lost_by_compaction" if way == "compaction" else "no_owner"
            yield _found(kind, call, f"After its {way} no transcript of {owner} tells of it.")


def _misplaced(each: Rendered, calls: Mapping[str, LedgerCall]) -> Iterator[Finding]:
    """Results that stand behind another call than the one that brought them.

    No two calls of a relay have the same arguments, so these say which call a provider reads.
    """
    whole = {
        json.dumps(calls[digits].arguments, sort_keys=True): calls[digits]
        for line in each.manifest
        if (digits := _digits(line["call"] or "")) in calls
        if line["kind"] == REAL and not line["capped"]
    }
    for asked, answer in _pairs(each.messages):
        call = whole.get(asked)
        if call is not None and call.result is not None and answer != call.result:
            yield _elsewhere(each, call, answer)
    for shown, text in each.corrections().items():
        call = calls.get(_digits(shown))
        stated = text.rpartition(NOW)[2] if NOW in text else None
        if stated and call and call.result is not None:
            if not stated.startswith(notices.quoted(call.result, most_bytes=CAP_BYTES)):
                yield _elsewhere(each, call, stated)


def _pairs(messages: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The arguments of each call with its result, matched as their provider does: by reply."""
    waiting: dict[str, list[str]] = {}
    for message in messages:
        if message["role"] == "assistant":
            waiting = defaultdict(list)
            for call in message.get("tool_calls") or ():
                asked = json.loads(call["function"]["arguments"])
                waiting[call["id"]].append(json.dumps(asked, sort_keys=True))
        elif message["role"] == "tool":
            yield waiting[message["tool_call_id"]].pop(0), _text(message)


def _text(message: Mapping[str, Any]) -> str:
    """What a message says; its content is one text or a list of parts."""
    content = message["content"]
    parts = [{"text": content}] if isinstance(content, str) else content
    return "\n".join(str(part.get("text", "")) for part in parts)


def _elsewhere(each: Rendered, call: LedgerCall, text: str) -> Finding:
    sentence = f"In {each.session} it is answered with {text[:80]!r}."
    return _found("misplaced_result", call.id, sentence)


def _found(kind: str, call: str, sentence: str) -> Finding:
    return Finding(kind=kind, call=f"call_{call}", sentence=sentence)


def _digits(shown: str) -> str:
    return shown.rpartition("_")[2]
