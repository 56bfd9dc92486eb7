"""Broken conversations with a known truth: every call and every result bears a token of its own.

A history is what an agent might have kept: orphans of lost replies, gaps, copies, results behind
the user's words, ids numbered anew in each reply, arguments cut off, replies that broke off. Only
what nobody could tell from outside is left out, such as a foreign result in the very place and
under the very id of the right one.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from ledger.transcripts.neutral import Call, Entry, Opaque, OpaqueKind, Result, Role, Text

ODD_IDS = ("c:blue", "x" * 70, "ruf ä", "functions.find:0", "a b")
FATES = ("there",) * 6 + ("lost", "late", "twice")
NAMES = ("find_order", "send_mail", "read")


@dataclass
class History:
    """The entries as kept, and whose result each token is; `None` where its reply is lost."""

    entries: list[Entry] = field(default_factory=list)
    owners: dict[str, str | None] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    steps: list[list[Call]] = field(default_factory=list)  # as asked, whole
    later: list[Result] = field(default_factory=list)
    tokens: int = 0
    may_cut: bool = True
    may_restart: bool = True

    def token(self, kind: str) -> str:
        self.tokens += 1
        return f"{kind}-{self.tokens}-"

    def say(self, text: str = "") -> None:
        text = text or self.token("said")
        self.said.append(text)
        self.entries.append(Entry(Role.USER, (Text(text),)))

    def result(self, answers: str, owner: str | None, *, is_error: bool = False) -> Result:
        token = self.token("got")
        result = Result(answers=answers, parts=(Text(token),), is_error=is_error)
        self.owners[token], self.results[token] = owner, result
        return result

    def put(self, result: Result) -> None:
        self.entries.append(Entry(Role.TOOL, (result,)))


@st.composite
def histories(
    draw: st.DrawFn, thought: str = "", *, may_cut: bool = True, may_restart: bool = True
) -> History:
    """A history of up to eight steps; `thought` is the shape whose reasoning some replies have.

    `may_cut`: arguments may be cut off, which a form that has them as objects cannot keep.
    `may_restart`: ids may begin anew in each reply, which a form without replies cannot tell.
    """
    history = History(may_cut=may_cut, may_restart=may_restart)
    if draw(st.booleans()):
        history.entries.append(Entry(Role.SYSTEM, (Text("You work for Acme."),)))
    if draw(st.integers(0, 9)) < 9:
        history.say()
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("step",) * 6 + ("lost", "prompt", "words", "nothing")))
        _PARTS[kind](draw, history, number, thought)
    history.later = []
    _forget_unused(history)
    return history


def _step(draw: st.DrawFn, history: History, number: int, thought: str) -> None:
    ids = draw(st.sampled_from(("unique", "odd", *(("restarted", "twins") * history.may_restart))))
    failed = draw(st.integers(0, 9)) == 0
    calls = [
        _call(draw, history, _id(draw, ids, number, index))
        for index in range(draw(st.integers(1, 3)))
    ]
    history.steps.append([_whole(call) for call in calls])
    words = (Text(history.token("words")),) if draw(st.booleans()) else ()
    _reply(draw, history, (*words, *calls), thought, failed=failed)
    if not failed:
        _results(draw, history, calls, whole=ids == "twins", restarted=ids != "unique")


def _reply(
    draw: st.DrawFn, history: History, parts: tuple[Any, ...], thought: str, *, failed: bool = False
) -> None:
    opaque: dict[str, Any] = {"finish_reason": "error"} if failed else {}
    if thought and draw(st.booleans()):
        parts = _thinking(thought, parts)
    history.entries.append(Entry(Role.ASSISTANT, parts, failed=failed, opaque=opaque))


def _thinking(shape: str, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    bodies = {
        "anthropic": {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        "deepseek": {"reasoning_content": "Hm."},
        "kimi": {"reasoning_content": "Hm."},
        "openai-responses": {"type": "reasoning", "id": "rs_1", "summary": []},
    }
    if shape not in bodies:
        return parts
    return (Opaque(OpaqueKind.REASONING, shape, bodies[shape]), *parts)


def _id(draw: st.DrawFn, ids: str, number: int, index: int) -> str:
    if ids == "odd":
        return f"{draw(st.sampled_from(ODD_IDS))}{number}{index}"
    return {"unique": f"call_{number}_{index}", "restarted": f"call_{index}"}.get(ids, "twin")


def _call(draw: st.DrawFn, history: History, label: str) -> Call:
    token = history.token("ask")
    name = draw(st.sampled_from(NAMES))
    text = f'{{"ask":"{token}"}}'
    whole = not history.may_cut or draw(st.integers(0, 9)) > 0
    if whole:
        return Call(label, name, {"ask": token}, text)
    return Call(label, name, None, text[:-1])


def _results(
    draw: st.DrawFn, history: History, calls: list[Call], *, whole: bool, restarted: bool
) -> None:
    """The results of a step: all in order where ids are equal, else what a bad day leaves."""
    interrupted = False
    for call in calls if whole else draw(st.permutations(calls)):
        fate = "there" if whole else draw(st.sampled_from(FATES))
        result = history.result(call.id or "", _asked(call), is_error=draw(st.booleans()))
        if fate == "lost":
            token = result.text
            del history.owners[token], history.results[token]
            continue
        if not whole and not restarted and not interrupted and draw(st.integers(0, 9)) == 0:
            history.say()
            interrupted = True
        if fate == "late" and not restarted:
            history.later.append(result)
            continue
        history.put(result)
        if fate == "twice" and not interrupted:
            other = history.result(call.id or "", _asked(call))
            history.put(draw(st.sampled_from((result, other))))
    if draw(st.booleans()):
        history.say()
        while history.later and draw(st.booleans()):
            history.put(history.later.pop())
    _forget_unused(history)


def _forget_unused(history: History) -> None:
    """Tokens made for copies that were not put down."""
    kept = {r.text for entry in history.entries for r in entry.results}
    kept |= {result.text for result in history.later}
    history.owners = {t: owner for t, owner in history.owners.items() if t in kept}
    history.results = {t: result for t, result in history.results.items() if t in kept}


def _asked(call: Call) -> str:
    return (call.unparsed or "").split('"')[3]


def _whole(call: Call) -> Call:
    """The call as its model made it, before anything was cut off."""
    return Call(call.id, call.name, {"ask": _asked(call)})


def _lost(draw: st.DrawFn, history: History, number: int, thought: str) -> None:
    """Results whose reply was never written."""
    for index in range(draw(st.integers(1, 3))):
        history.put(history.result(f"lost_{number}_{index}", None))


def _prompt(draw: st.DrawFn, history: History, number: int, thought: str) -> None:
    """A prompt submitted twice."""
    history.say()
    history.say(history.said[-1])


def _words(draw: st.DrawFn, history: History, number: int, thought: str) -> None:
    parts: tuple[Any, ...] = (Text(history.token("words")),)
    _reply(draw, history, parts, thought)


def _nothing(draw: st.DrawFn, history: History, number: int, thought: str) -> None:
    """A reply of nothing, or half of a call."""
    half = draw(
        st.sampled_from(((), (Call(None, "read", {}),), (Call("h", "read", None),), (Text(""),)))
    )
    _reply(draw, history, half, thought)


_PARTS = {"step": _step, "lost": _lost, "prompt": _prompt, "words": _words, "nothing": _nothing}
