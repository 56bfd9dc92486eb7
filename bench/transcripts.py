"""Rendering and repairing conversations: pure work of one core, no server, no database.

One conversation of 1,000 entries with 500 calls is rendered for each provider; conversations of
1,000 and of 10,000 messages, broken alike, are repaired in turn, so that their ratio shows
whether the work grows as the conversation does.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ledger.transcripts.neutral import Call, Entry, Result, Role, Text
from ledger.transcripts.profiles import Profile, profile, profiles
from ledger.transcripts.render import render
from ledger.transcripts.repair import repair

ENTRIES = 1000
FEW, MANY = 1000, 10_000
FORMAT = "openai-chat"
LOSES_ITS_REPLY, LOSES_A_RESULT = 20, 15
"""Of how many steps one is broken, in each way."""
TEXT = "The opening hours are nine to five on weekdays, and the shop is closed on Sundays. " * 4


def conversation(entries: int) -> list[Entry]:
    """A question, a reply with two calls, their results and an answer, as often as fits."""
    return [entry for step in range(entries // 4) for entry in _step(step)]


def _step(step: int) -> list[Entry]:
    ids = [f"toolu_{step:05}{letter}" for letter in "ab"]
    calls = tuple(
        Call(id_, "lookup", {"name": "opening-hours", "day": step}, ledger_id=f"call_{id_}")
        for id_ in ids
    )
    results = tuple(
        Result(id_, (Text(TEXT),), name="lookup", ledger_id=f"call_{id_}", delivery="real")
        for id_ in ids
    )
    return [
        Entry(Role.USER, (Text(f"Question {step}: when is the shop open?"),)),
        Entry(Role.ASSISTANT, (Text("I shall look it up."), *calls)),
        Entry(Role.TOOL, results),
        Entry(Role.ASSISTANT, (Text("It is open from nine to five."),)),
    ]


def broken(messages: int) -> list[dict[str, Any]]:
    """As many chat messages, with replies and results lost here and there."""
    found: list[dict[str, Any]] = []
    step = 0
    while len(found) < messages:
        found += _damaged(render(_step(step), profile=profile(FORMAT)).body, step)
        step += 1
    return found[:messages]


def _damaged(messages: list[dict[str, Any]], step: int) -> list[dict[str, Any]]:
    if step % LOSES_ITS_REPLY == LOSES_ITS_REPLY - 1:
        return [messages[0], *messages[2:]]
    if step % LOSES_A_RESULT == LOSES_A_RESULT - 1:
        return [*messages[:2], *messages[3:]]
    return messages


def measure(rounds: int) -> dict[str, Any]:
    """CPU milliseconds, the median and the worst of the rounds."""
    told = conversation(ENTRIES)
    transcripts = {count: broken(count) for count in (FEW, MANY)}
    renders: dict[str, list[float]] = {name: [] for name in profiles()}
    repairs: dict[int, list[float]] = {FEW: [], MANY: []}
    for _ in range(rounds):
        for name, each in profiles().items():
            renders[name].append(_ms(partial(render, told, profile=each)))
        for count, body in transcripts.items():
            repairs[count].append(_ms(partial(_repair, body, profile(FORMAT))))
    few, many = (statistics.median(repairs[count]) for count in (FEW, MANY))
    return {
        "entries": ENTRIES,
        "calls": sum(len(entry.calls) for entry in told),
        "render_ms": _figures(renders),
        "repair_ms": _figures({str(count): times for count, times in repairs.items()}),
        "repair_ratio": round(many / few, 2),
    }


def _repair(body: list[dict[str, Any]], target: Profile) -> None:
    repair(body, format=FORMAT, profile=target)


def _ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def _figures(times: Mapping[str, list[float]]) -> dict[str, dict[str, float]]:
    return {
        name: {"median": round(statistics.median(each), 2), "worst": round(max(each), 2)}
        for name, each in times.items()
    }


def table(report: Mapping[str, Any]) -> str:
    """The report for a person."""
    lines = [f"{report['entries']} entries with {report['calls']} calls, milliseconds of CPU"]
    lines.append(f"{'rendered for':<22} {'median':>9} {'worst':>9}")
    lines += _rows(report["render_ms"])
    lines.append(f"{'messages repaired':<22} {'median':>9} {'worst':>9}")
    lines += _rows(report["repair_ms"])
    lines.append(f"ten times the messages cost {report['repair_ratio']} times as much")
    return "\n".join(lines)


def _rows(figures: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [f"{name:<22} {row['median']:>9} {row['worst']:>9}" for name, row in figures.items()]
