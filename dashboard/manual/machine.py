"""`state-machine.md`: states, events, allowed pairs and deadlines, from `ledger/machine.py`."""

from dashboard.manual.markdown import code, codes, paragraphs, table
from ledger import machine
from ledger.machine import Transition
from ledger.verdicts import WHOSE_TURN
from ledger.vocabulary import SETTLED, CallState, Deadline, Effect

NOT_MADE_YET = ("interrupt_expired",)
"""Kinds of event that the machine knows and no verb makes yet."""

HEAD = """# The state machine

A call is in one state. It moves by events only, each of a kind that stands in the table below. The
table is data in `ledger/machine.py`. Three things are derived from it: the guard in Python, the
guard in PostgreSQL (a trigger refuses an event that the published table does not have, and a state
that is not the one of the last event), and this page.

Words: [glossary](glossary.md). Why the second axis exists: [semantics](../design/semantics.md).
"""


def page() -> str:
    """The whole page."""
    return "\n".join([
        HEAD, "## States", "", _states(), "## Diagram", "", _diagram(),
        "Events that leave the state as it is are not drawn.", "",
        "## Events that move a call", "", _events(moving=True),
        "An event that settles a call is its last but for facts: a settled state has no way out.",
        "", "## Events that leave the state as it is", "", _events(moving=False),
        f"The machine knows these kinds, and no verb makes them yet: {codes(NOT_MADE_YET)}.", "",
        "## Which effects a state allows", "", _pairs(),
        "## Which deadlines a state has", "",
        "Entering a state disarms every other deadline. The earliest one is `due_at`.", "",
        _deadlines(),
    ])  # fmt: skip


def _states() -> str:
    said = paragraphs(CallState)
    rows = [
        (
            code(state),
            WHOSE_TURN.get(state, "nobody"),
            "yes" if state in SETTLED else "",
            said[state],
        )
        for state in CallState
    ]
    return table(("State", "Whose turn", "Settled", "Meaning"), rows)


def _diagram() -> str:
    kinds: dict[tuple[str, str], list[str]] = {}
    for each in machine.TRANSITIONS.values():
        for source, target in each.edges():
            if source != target:
                kinds.setdefault((source or "[*]", target), []).append(each.kind)
    lines = [f"    {a} --> {b}: {' / '.join(names)}" for (a, b), names in sorted(kinds.items())]
    ends = [f"    {state} --> [*]" for state in CallState if state in SETTLED]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, *ends, "```", ""])


def _events(*, moving: bool) -> str:
    heads = ("Event", "From", "To", "Made by", "Must carry", "Effect afterwards")
    rows = [_event(each) for each in machine.TRANSITIONS.values() if bool(each.target) is moving]
    return table(heads if moving else [head for head in heads if head != "To"],
                 rows if moving else [(*row[:2], *row[3:]) for row in rows])  # fmt: skip


def _event(each: Transition) -> tuple[str, ...]:
    return (
        code(each.kind),
        "every state" if each.source == machine.EVERY_STATE else _in_order(each.source),
        _in_order(each.target),
        ", ".join(sorted(each.by)),
        codes(sorted(each.needs)),
        "unchanged" if each.effects is None else codes(e for e in Effect if e in each.effects),
    )


def _in_order(states: frozenset[CallState]) -> str:
    return codes(state for state in CallState if state in states)


def _pairs() -> str:
    rows = [(code(state), *(_allowed(state, effect) for effect in Effect)) for state in CallState]
    return table(("State", *(code(effect) for effect in Effect)), rows)


def _allowed(state: CallState, effect: Effect) -> str:
    if effect not in machine.PAIRS[state]:
        return ""
    if effect is Effect.POSSIBLE and state in machine.ONLY_UNDER:
        return "only " + codes(sorted(machine.ONLY_UNDER[state]))
    return "only `read_only`" if effect is Effect.NONE else "yes"


def _deadlines() -> str:
    rows = [
        (code(state), codes(each for each in Deadline if each in machine.TIMERS[state]))
        for state in CallState
        if state not in SETTLED
    ]
    return table(("State", "Deadlines that may be armed"), rows)
