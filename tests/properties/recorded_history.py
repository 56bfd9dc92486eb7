"""Broken conversations beside the ledger that recorded them: what it knows, and what is true.

The ledger has every call of the conversation, in its place and with its whole arguments. Of each it
has the result, which the transcript may hold too, have lost or hold twice, or nothing yet. It also
knows replies that the transcript lost, with or without their results, and calls with labels of
others that were asked for elsewhere in the session.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from ledger import notices
from ledger.transcripts.known import Known, KnownCall
from ledger.transcripts.neutral import Call, Entry, Result, Role, Text
from tests.properties.broken_history import NAMES, History, histories

NOTICE = notices.render("interrupted").text


@dataclass
class Recorded:
    """A history, what the ledger knows, and its results: the token of each by that of its call.

    `present` are the calls that stand in the transcript in a way that nobody could mistake; `lost`
    those of replies that only a result is left of; the ledger's other calls are absent.
    """

    history: History
    calls: list[KnownCall] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)

    @property
    def known(self) -> Known:
        return Known(self.calls)

    @property
    def askers(self) -> dict[str, str]:
        """The call of each result."""
        return {token: ask for ask, token in self.results.items()}

    def record(self, reply: list[Call], tokens: dict[str, str]) -> None:
        """Put a reply down, whole, with the results that there are."""
        step = len({(each.step) for each in self.calls})
        calls = [replace(call, ledger_id=f"call_{step}_{n}") for n, call in enumerate(reply)]
        whole = Entry(Role.ASSISTANT, tuple(calls))
        for position, call in enumerate(calls):
            token = tokens.get(asked(call))
            told = notices.render("under_way").text
            self.calls.append(
                KnownCall(
                    ledger_id=call.ledger_id, provider_id=call.id or "", tool=call.name, call=call,
                    step=step, position=position, reply=whole,
                    result=(Text(token),) if token else None,
                    template="" if token else "under_way", notice="" if token else told,
                )
            )  # fmt: skip
            if token:
                self.results[asked(call)] = token


def asked(call: Call) -> str:
    """The token of a call."""
    return str(dict(call.arguments or {})["ask"])


@st.composite
def recorded_histories(
    draw: st.DrawFn, thought: str = "", *, may_cut: bool = True, may_restart: bool = True
) -> Recorded:
    """A broken history and its ledger; the options are those of `histories`."""
    history = draw(histories(thought, may_cut=may_cut, may_restart=may_restart))
    recorded = Recorded(history)
    for reply in history.steps:
        recorded.record(reply, _results_of(draw, recorded, reply))
        recorded.present |= {asked(call) for call in reply}
    for reply, tokens in _lost_replies(draw, history):
        recorded.record(reply, tokens)
        recorded.lost |= set(tokens)
    if draw(st.booleans()):
        reply = [_call_like(draw, history) for _ in range(draw(st.integers(1, 2)))]
        recorded.record(reply, {asked(call): history.token("got") for call in reply})
    recorded.present -= _doubtful(recorded)
    return recorded


def _results_of(draw: st.DrawFn, recorded: Recorded, reply: list[Call]) -> dict[str, str]:
    """The ledger's results of a reply's calls: one that the transcript holds, or one it lost."""
    tokens: dict[str, str] = {}
    history = recorded.history
    for call in reply:
        held = [token for token, owner in history.owners.items() if owner == asked(call)]
        if held:
            tokens[asked(call)] = draw(st.sampled_from(held))
            if len(held) == 1 and draw(st.integers(0, 3)) == 0:
                _told_instead(history, held[0])
        elif draw(st.booleans()):
            tokens[asked(call)] = history.token("got")
    return tokens


def _told_instead(history: History, token: str) -> None:
    """Put our own notice where the result stood: it came when the model had gone on."""
    held = [each for entry in history.entries for each in entry.results if each.text == token]
    if len(held) > 1:
        return

    def told(part: object) -> object:
        if isinstance(part, Result) and part.text == token:
            return replace(part, parts=(Text(NOTICE),), is_error=True)
        return part

    history.entries[:] = [
        replace(entry, parts=tuple(told(part) for part in entry.parts)) if entry.results else entry
        for entry in history.entries
    ]
    del history.owners[token], history.results[token]


def _lost_replies(draw: st.DrawFn, history: History) -> list[tuple[list[Call], dict[str, str]]]:
    """Replies of which only results are left, as the ledger has them: all of them, or none."""
    left: dict[str, list[Result]] = defaultdict(list)
    for token, owner in history.owners.items():
        if owner is None:
            result = history.results[token]
            left[str(result.answers).rpartition("_")[0]].append(result)
    found = []
    for results in left.values():
        if draw(st.booleans()):
            calls = [
                Call(each.answers, draw(st.sampled_from(NAMES)), {"ask": history.token("ask")})
                for each in results
            ]
            pairs = zip(calls, results, strict=True)
            found.append((calls, {asked(call): each.text for call, each in pairs}))
    return found


def _call_like(draw: st.DrawFn, history: History) -> Call:
    """A call of another reply under a label that may be one of the transcript's own."""
    labels = ["gone", *sorted({call.id or "" for reply in history.steps for call in reply})]
    name = draw(st.sampled_from(NAMES))
    return Call(draw(st.sampled_from(labels)), name, {"ask": history.token("ask")})


def _doubtful(recorded: Recorded) -> set[str]:
    """Calls that nobody can tell apart: cut off, under a label and name that others bear too."""
    bearers: dict[tuple[str, str], int] = defaultdict(int)
    for each in recorded.calls:
        bearers[each.provider_id, each.tool] += 1
    whole = {
        asked(call)
        for entry in recorded.history.entries
        for call in entry.calls
        if call.arguments and "ask" in call.arguments
    }
    return {
        asked(each.call)
        for each in recorded.calls
        if asked(each.call) not in whole and bearers[each.provider_id, each.tool] > 1
    }
