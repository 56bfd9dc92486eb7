"""The world against the ledger, call by call: lost, doubled, false success, false failure, stuck.

Pure: it is given what the ledger says, what the outside saw and what was answered to agents.
What nobody can know is no finding: a call closed as `abandoned`, or a sign-in that ran out.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from drills.report import Finding
from drills.world import Seen
from sandbox.folder import SEEDS

NO_EFFECT = ("none", "not_begun", "did_not_happen")
SUCCEEDED, AMBIGUOUS, ABANDONED = "succeeded", "ambiguous", "abandoned"
CREATES = ("sandbox.send_mail", "sandbox.pay", "sandbox.render")


@dataclass(frozen=True, slots=True)
class Answered:
    """What the API answered about one intent: the call ids, and the refusals for good."""

    key: str
    calls: frozenset[str] = frozenset()
    refused: tuple[str, ...] = ()
    reuse_accepted: bool = False


@dataclass(frozen=True, slots=True)
class LedgerCall:
    """A call as the ledger has it at the end. `id` is its 32 hex digits."""

    id: str
    key: str
    tool: str
    recovery_class: str
    arguments: Mapping[str, Any]
    state: str
    effect: str
    settled: bool
    result: str | None = None
    reason: str = ""
    cause: str = ""
    attempts: tuple[Mapping[str, Any], ...] = ()
    events: tuple[tuple[str, float, int], ...] = field(default=())
    session: str = ""
    settled_at: float | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "LedgerCall":
        """Read a row of the desk's verb `calls`."""
        known = {name: row[name] for name in cls.__slots__}
        known["attempts"] = tuple(row["attempts"])
        known["events"] = tuple((kind, at, fence) for kind, at, fence in row["events"])
        return cls(**known | {"key": row["key"] or "", "session": row["session"] or ""})


def findings(
    answered: Iterable[Answered], calls: Iterable[LedgerCall], seen: Seen
) -> list[Finding]:
    """Everything that is wrong, in the order of the kinds."""
    known = list(calls)
    return [
        *_of_answers(list(answered), known),
        *(finding for call in known for finding in _of_call(call, seen)),
        *_unrecorded(known, seen),
    ]


def _of_answers(answered: list[Answered], calls: list[LedgerCall]) -> Iterator[Finding]:
    by_id = {call.id for call in calls}
    for key, times in Counter(call.key for call in calls if call.key).items():
        if times > 1:
            yield Finding(kind="doubled", sentence=f"The key {key} has {times} calls.")
    for each in answered:
        for call in each.calls:
            if _digits(call) not in by_id:
                yield _found("lost", call, "It was accepted, and the ledger has no such call.")
        if len(each.calls) > 1:
            yield Finding(
                kind="doubled",
                sentence=f"The key {each.key} was answered with {len(each.calls)} calls.",
            )
        if each.reuse_accepted:
            yield Finding(
                kind="key_reused", sentence=f"The key {each.key} was taken for other arguments."
            )


def _of_call(call: LedgerCall, seen: Seen) -> Iterator[Finding]:
    if not call.settled:
        yield _found("stuck", call.id, f"It is still {call.state}: {_story(call)}.")
    if call.tool in CREATES:
        yield from _of_effects(call, seen.effects(call.tool, call.id))
    elif call.tool == "sandbox.write_artifact":
        yield from _of_artifact(call, seen)
    elif call.tool == "sandbox.lookup":
        yield from _of_lookup(call)
    elif call.tool == "sandbox.tally" and call.state == SUCCEEDED and not seen.runs.get(call.id):
        yield _found("false_success", call.id, "It succeeded, and never ran.")


def _of_effects(call: LedgerCall, times: int) -> Iterator[Finding]:
    if times > 1:
        yield _found("doubled", call.id, f"The world has it {times} times: {_story(call)}.")
    yield from _of_presence(call, present=times > 0)


def _of_presence(call: LedgerCall, *, present: bool) -> Iterator[Finding]:
    if not call.settled or call.state == ABANDONED:
        return
    if call.effect == "happened" and not present:
        yield _found("false_success", call.id, f"{_says(call)}, and the world has nothing.")
    if call.effect in NO_EFFECT and present:
        yield _found("false_failure", call.id, f"{_says(call)}, and the world has it.")


def _of_artifact(call: LedgerCall, seen: Seen) -> Iterator[Finding]:
    found = seen.artifacts.get(str(call.arguments["path"]))
    text = str(call.arguments["text"]).encode()
    if found is not None and found != text:
        yield _found("half_written", call.id, f"Its file has {len(found)} of {len(text)} bytes.")
    yield from _of_presence(call, present=found is not None)


def _of_lookup(call: LedgerCall) -> Iterator[Finding]:
    name = str(call.arguments["name"])
    if call.state == SUCCEEDED:
        said = json.loads(call.result or "null") or {}
        if said.get("entry") != SEEDS.get(name):
            yield _found("false_success", call.id, f"It answered something else for {name!r}.")
    elif call.state == "failed" and call.cause == "not_found" and name in SEEDS:
        yield _found("false_failure", call.id, f"It says that there is no {name!r}; there is.")


def _unrecorded(calls: list[LedgerCall], seen: Seen) -> Iterator[Finding]:
    """Effects whose call the ledger does not know: an effect before its record."""
    of_calls = {name: 0 for name in ("mails", "payments")}
    for call in calls:
        for name, tool in (("mails", "sandbox.send_mail"), ("payments", "sandbox.pay")):
            if call.tool == tool:
                of_calls[name] += seen.effects(tool, call.id)
    for name, known in of_calls.items():
        there = sum(getattr(seen, name).values())
        if there > known:
            sentence = f"The world has {there} {name}, the ledger knows the calls of {known}."
            yield Finding(kind="unrecorded", sentence=sentence)


def _found(kind: str, call: str, sentence: str) -> Finding:
    return Finding(kind=kind, call=f"call_{_digits(call)}", sentence=sentence)


def _digits(call: str) -> str:
    return call.rpartition("_")[2]


def _says(call: LedgerCall) -> str:
    return f"It settled as {call.state}, effect {call.effect} ({_story(call)})"


def _story(call: LedgerCall) -> str:
    return ", ".join(kind for kind, _, _ in call.events) or "no events"
