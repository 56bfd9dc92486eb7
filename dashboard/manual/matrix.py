"""`matrix.md`: what recovery may do for each recovery class, from `recovery/matrix.py`."""

from dashboard.manual.markdown import code, codes, paragraphs, table
from ledger.dispatch import RING_AGAIN_S
from ledger.vocabulary import ExhaustionReason, RecoveryClass
from recovery import deadlines, decisions, failures, watchdog
from recovery.ageing import ASKED, REMIND_AT
from recovery.clocks import JUMP_S
from recovery.matrix import PUBLISHED, ROWS, RULES, Cell, Rule

LABELS = {
    "recorded_scheduled_backing_off": "`recorded`, `scheduled` or `backing_off`",
    "running_not_begun": "attempt lost, boundary not crossed",
    "running_possible": "attempt lost, effect `possible`",
    "parked": "`parked`",
    "settled_not_delivered": "settled, not fetched yet",
    "ambiguous": "`ambiguous`",
}
LETTERS = (
    ("ring", "the doorbell is rung again; that is no attempt"),
    ("R", "repeated: `backing_off`, then a new attempt, within attempts and time"),
    ("RK", "repeated under the same key or target, probed first where there is a probe"),
    ("H", "found again by its handle"),
    ("P", "probed: the outside is asked whether the effect happened"),
    ("A", "`ambiguous`: an operator's turn, never repeated by the machine"),
    ("F", "one fresh flow within the cap, then the end"),
    ("K", "the stored result is kept and given"),
)
HEAD = """# The recovery matrix

What the machine may do with a call whose attempt was lost. The rows are data in
`recovery/matrix.py`; `recovery/decisions.py` reads them and adds nothing. "Repeated" always means
within the attempts of the [policy](policies.md) and its schedule-to-close.

What a tool's own error proves stands in [network.md](network.md). Why a repeat needs proof:
[leases, fences and proof of death](../explanation/fences.md).
"""


def page() -> str:
    """The whole page."""
    return "\n".join([
        HEAD, "## By what the ledger knows", "", _published(),
        table(("Letter", "Means"), [(f"**{letter}**", text) for letter, text in LETTERS]),
        "## The rule of each class", "", _rules(),
        "## The ladder", "",
        "An interrupted call climbs these rungs in this order; the first that answers decides. "
        "What was passed over is written on the incident, with the reason.", "", _ladder(),
        "A probe may find a handle: it is stored, and the call is resumed by it. A `long_running` "
        "call whose policy says `repeat_start` is started again under its key, which finds the "
        "first start.", "",
        "## Bounds of the machine", "", _bounds(),
        "## Which deadline is acted on in which state", "", _fired(),
        "## Why the machine gives up", "",
        "A call that ends `ambiguous` says why, as the incident's `exhausted_because`.", "",
        codes(ExhaustionReason) + ".", "",
    ])  # fmt: skip


def _published() -> str:
    rows = [(LABELS[row], *(_said(cell) for cell in _cells(row))) for row in ROWS]
    return table(("What is known", *(code(each) for each in RecoveryClass)), rows)


def _said(cell: Cell) -> str:
    return cell.sentence if cell.letters == "-" else f"**{cell.letters}** {cell.sentence}"


def _cells(row: str) -> list[Cell]:
    return [PUBLISHED[row, each] for each in RecoveryClass]


def _rules() -> str:
    said = paragraphs(RecoveryClass)
    rows = [
        (
            code(each),
            code(rule.code),
            said[each],
            "yes" if rule.repeats_when_possible else "no",
            "as the policy says" if rule.repeats_not_begun is None else f"{rule.repeats_not_begun}",
            _end(each, rule),
        )
        for each, rule in RULES.items()
    ]
    heads = ("Class", "Rule", "In one line", "Repeats while an effect is `possible`",
             "Repeats when not begun", "Ends, effect `possible`, as")  # fmt: skip
    return table(heads, rows)


def _end(each: RecoveryClass, rule: Rule) -> str:
    if each is RecoveryClass.READ_ONLY:
        return "cannot occur"
    return "`expired`" if rule.ends_open else "`ambiguous`"


RUNGS = (
    ("late_result", "Is a result of the only crossed attempt among the evidence?", "adopt it"),
    ("live_claim", "Does an attempt still hold a live lease?", "wait for it"),
    ("handle", "Is there a handle that is not lost, and time left?", "park, then poll"),
    ("non_start", "Did no attempt cross, or was its effect disproved?", "repeat, else settle"),
    ("probe", "Does the tool have a probe, and the policy name it?", "ask; believe a negative only "
     "from an authoritative probe that was asked after denial unlocked"),
    ("class_rule", "May this class repeat while an effect is possible?", "repeat"),
    ("operator", "None of these", "`ambiguous`"),
)  # fmt: skip


def _ladder() -> str:
    rows = [(number, code(rung), asked, then)
            for number, (rung, asked, then) in enumerate(RUNGS, start=1)]  # fmt: skip
    return table(("", "Rung", "Question", "If yes"), rows)


def _bounds() -> str:
    return table(("Bound", "Value"), [
        ("Attempts of one call that killed their worker", decisions.KILLS_ITS_WORKER),
        ("Recovery steps of one call without new evidence", decisions.STEPS_WITHOUT_PROGRESS),
        ("Leases within which a lost attempt must be proven dead", decisions.STABLE_LEASES),
        ("A step of one call that breaks so often is given up", failures.BROKEN_TIMES),
        ("Reminders, as parts of the review time", ", ".join(f"{each:g}" for each in REMIND_AT)),
        ("Asked at each level of escalation", ", ".join(ASKED)),
        ("A jump of the clock beyond this pauses one lease", f"{JUMP_S:g} s"),
        ("Longest Retry-After that is waited for", f"{decisions.RETRY_AFTER_CAP_S:g} s"),
        ("Rows acted on in one pass of the watchdog", watchdog.BITE),
        ("A sweep this late grants one lease before it judges", f"{watchdog.LATE_S:g} s"),
        ("An unclaimed call is rung again after",
         ", ".join(f"{each:g}" for each in RING_AGAIN_S) + " s"),
    ])  # fmt: skip


def _fired() -> str:
    by_state: dict[str, list[str]] = {}
    for state, deadline in deadlines.FIRED:
        by_state.setdefault(str(state), []).append(str(deadline))
    rows = [(code(state), codes(names)) for state, names in by_state.items()]
    return table(("State", "Deadlines"), rows)
