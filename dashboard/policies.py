"""The policy editor: a form and a text of one document, what the linter says, the difference.

Knobs are data, named by their path in the document; what they mean and what is refused is the
business of `ledger/policies.py`. Nothing typed is lost: what cannot be read stays in its field.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger import strictjson
from ledger.errors import LedgerError, UnsafePolicy
from ledger.models import Tool
from ledger.policies import (
    BOUNDS,
    SECOND_PERSON,
    CallPolicy,
    Finding,
    lint,
    policy_for,
    unlinted,
)
from ledger.vocabulary import Boundary, Cause, RecoveryClass
from recovery import advice
from recovery.advice import Surroundings


@dataclass(frozen=True, slots=True)
class Knob:
    """One field. `kind`: number, switch, choice, many, text, or lines: a text with one per line."""

    path: str
    title: str
    kind: str = "number"
    hint: str = ""
    choices: tuple[str, ...] = ()


MEANS = ("no_effect", "effect_unknown")
OF_POINT = "Web address; else the runbook"
GROUPS: tuple[tuple[str, tuple[Knob, ...]], ...] = (
    ("Recovery class", (
        Knob("recovery_class", "Class", "choice", "", tuple(RecoveryClass)),
        Knob("boundary", "The effect can begin", "choice", "", tuple(Boundary)),
        Knob("key_template", "Key template", "text", "Over the arguments, such as path:{path}"),
    )),
    ("Time-outs, in seconds", (
        Knob("timeouts.schedule_to_start_s", "Schedule-to-start"),
        Knob("timeouts.start_to_close_s", "Start-to-close"),
        Knob("timeouts.schedule_to_close_s", "Schedule-to-close"),
        Knob("timeouts.heartbeat_s", "Heartbeat"),
        Knob("schedule_to_start_reschedules", "A late start is published again", "switch"),
    )),
    ("Attempts", (
        Knob("retry.attempts", "Attempts, the first included"),
        Knob("retry.initial_interval_s", "First wait, s"),
        Knob("retry.factor", "Each wait is longer by the factor"),
        Knob("retry.interval_cap_s", "Longest wait, s"),
        Knob("retry.jitter", "Waits are randomised (jitter)", "switch"),
        Knob("retry.not_retried", "Never repeated", "many", "", tuple(map(str, Cause))),
    )),
    ("When unknown", (
        Knob("tool_error_means", "A tool's error past the boundary means", "choice", "", MEANS),
        Knob("retries_tool_errors", "A tool's errors are repeated", "switch"),
        Knob("repeat_start", "A second start under the same key finds the first", "switch"),
        Knob("in_flight_grace_s", "In-flight grace, s"),
        Knob("recovery_window_s", "Recovery window, s"),
        Knob("review_s", "Review deadline, s"),
    )),
    ("Probe", (
        Knob("probe", "The outside is asked", "switch"),
        Knob("probe.authoritative", "A “no” of the probe is believed", "switch"),
        Knob("probe.timeout_s", "Time-out, s"),
        Knob("probe.interval_s", "Asked every, s"),
        Knob("probe.attempts", "Asked at most, times"),
    )),
    ("People and deliveries", (
        Knob("second_person", "Second person", "choice", "", SECOND_PERSON),
        Knob("delivery_delay_s", "Delivery delay, s", "number", "Undo is offered as long"),
        Knob("hold_dependents", "Later calls of the turn are held", "switch"),
        Knob("replay_reads_s", "Reads are answered again for, s"),
        Knob("keep_running", "Goes on when its turn is interrupted", "switch"),
        Knob("cancel_parked", "A parked call is cancelled with its turn", "switch"),
    )),
    ("Runbooks", (
        Knob("runbook", "Runbook", "text", "Where to look; shown beside each incident"),
        Knob("runbooks.before_start", "Broken before start", "text", OF_POINT),
        Knob("runbooks.during_execution", "Broken during execution", "text", OF_POINT),
        Knob("runbooks.after_execution", "Broken after execution", "text", OF_POINT),
        Knob("runbooks.during_handoff", "Broken during a hand-off", "text", OF_POINT),
    )),
    ("Masking", (
        Knob("masked", "Secret fields, one JSON pointer a line", "lines",
             "Such as /arguments/card/number or /result/rows/*/iban; earlier calls too"),
    )),
)  # fmt: skip
"""The fields of the form, in the order in which a reader asks."""

KNOBS = tuple(knob for _, knobs in GROUPS for knob in knobs)
TITLES = {knob.path: knob.title for knob in KNOBS}
EXAMPLE_PROBE = {"authoritative": False, "timeout_s": 10.0, "interval_s": 30.0, "attempts": 5}


@dataclass(frozen=True, slots=True)
class Shown:
    """One field as it is drawn: what stands in it, and what is wrong with it."""

    knob: Knob
    value: Any
    mistake: str = ""
    changed: bool = False

    @property
    def id(self) -> str:
        return "knob-" + self.knob.path.replace(".", "-").replace("_", "-")

    @property
    def range(self) -> str:
        """The bounds of a number, as its hint."""
        bound = BOUNDS.get(self.knob.path)
        return f"{bound.low:g} to {bound.high:.10g}" if bound else self.knob.hint


@dataclass(frozen=True, slots=True)
class Change:
    """One knob that differs: its path, and both values as a reader sees them."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A candidate as far as it was typed. `policy` is None where it cannot be read."""

    document: dict[str, Any]
    typed: Mapping[str, Any]
    mistakes: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""
    policy: CallPolicy | None = None


def of_form(posted: Any) -> Draft:
    """A draft from the fields of the form."""
    document: dict[str, Any] = {}
    typed: dict[str, Any] = {}
    mistakes: dict[str, str] = {}
    for knob in KNOBS:
        typed[knob.path] = _typed(knob, posted)
        try:
            _put(document, knob.path, _value(knob, typed[knob.path]))
        except ValueError:
            mistakes[knob.path] = f"{knob.title}: {typed[knob.path]!r:.40} is no number."
    if not typed["probe"]:
        document["probe"] = None
    return _read(document, typed, mistakes)


def of_text(text: str) -> Draft:
    """A draft from the text. What is no JSON object is kept as typed, with the reason."""
    try:
        document = strictjson.parse(text.encode())
        if not isinstance(document, dict):
            raise UnsafePolicy(detail="The text is no JSON object.")
    except (LedgerError, strictjson.NotStrict) as error:
        return Draft(document={}, typed={}, refusal=str(error))
    return _read(document, {}, {})


def of_document(document: Mapping[str, Any]) -> Draft:
    """A draft that is a stored version."""
    return _read(dict(document), {}, {})


def _typed(knob: Knob, posted: Any) -> Any:
    if knob.kind == "many":
        return posted.getlist(knob.path)
    if knob.kind == "switch":
        return knob.path in posted
    return posted.get(knob.path, "").strip()


def _value(knob: Knob, typed: Any) -> Any:
    """Raises ValueError for what is no number."""
    if knob.kind == "lines":
        return [each.strip() for each in typed.splitlines() if each.strip()]
    if knob.kind != "number":
        return typed
    number = float(typed)
    return int(number) if number.is_integer() and "attempts" in knob.path else number


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    if path == "probe":
        return
    *before, name = path.split(".")
    for each in before:
        document = document.setdefault(each, {})
    document[name] = value


def _read(document: dict[str, Any], typed: dict[str, Any], mistakes: dict[str, str]) -> Draft:
    if mistakes:
        return Draft(document=document, typed=typed, mistakes=mistakes)
    try:
        policy = unlinted(document)
    except UnsafePolicy as refusal:
        return Draft(document=document, typed=typed, refusal=str(refusal))
    return Draft(document=document, typed=typed, policy=policy)


# What is shown of a draft


def groups(draft: Draft, active: Mapping[str, Any]) -> list[tuple[str, list[Shown]]]:
    """The fields of the form with what stands in them, marked where they differ from `active`."""
    values = flat(draft.policy.to_json()) if draft.policy else {}
    before = flat(active)
    return [
        (title, [_shown(knob, draft, values, before) for knob in knobs]) for title, knobs in GROUPS
    ]


def _shown(knob: Knob, draft: Draft, values: Mapping[str, Any], before: Mapping[str, Any]) -> Shown:
    path = knob.path
    if path in draft.typed and not draft.policy:
        value = draft.typed[path]
    elif path == "probe":
        value = values.get("probe.attempts") is not None
    else:
        value = values.get(path, EXAMPLE_PROBE.get(path.partition(".")[2], ""))
        value = f"{value:g}" if isinstance(value, float) else value
        value = "\n".join(value) if knob.kind == "lines" else value
    changed = bool(values) and values.get(path) != before.get(path)
    return Shown(knob, value, draft.mistakes.get(path, ""), changed)


def flat(document: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """A document as knobs by path."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{before}{name}.")
        else:
            found[f"{before}{name}"] = value
    return found


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs from one document to another, by path."""
    old, new = flat(before), flat(after)
    return [
        Change(path, told(old.get(path)), told(new.get(path)))
        for path in [*old, *(each for each in new if each not in old)]
        if old.get(path) != new.get(path)
    ]


def told(value: Any) -> str:
    """A value of a knob in words."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value) or "empty"


def findings(draft: Draft, around: Surroundings) -> list[Finding]:
    """What the linter says: errors first."""
    if draft.policy is None:
        sentences = [*draft.mistakes.values(), *([draft.refusal] if draft.refusal else [])]
        return [Finding("error", "unreadable", each) for each in sentences]
    linted = lint(draft.policy, gives_handles=around.gives_handles)
    found = [*linted, *advice.advise(draft.policy, around)]
    return sorted(found, key=lambda each: each.level != "error")


def in_short(found: Sequence[Finding]) -> str:
    """How many findings of each level, to be said aloud: `1 error, 2 warnings`."""
    counts = Counter(each.level for each in found)
    said = (f"{n} {level}{'' if n == 1 else 's'}" for level, n in counts.items())
    return ", ".join(said) or "No problem found"


def may_be_saved(draft: Draft, tool: Tool) -> bool:
    """Whether no error blocks it as a policy of this tool."""
    try:
        policy_for(draft.document, gives_handles=tool.gives_handles)
    except UnsafePolicy:
        return False
    return not draft.mistakes and draft.policy is not None


@dataclass(frozen=True, slots=True)
class Schedule:
    """The attempts written out: the waits between them, the sum, and what the last one gets."""

    waits: list[str]
    sentence: str


def schedule(policy: CallPolicy) -> Schedule | None:
    """How long all attempts take at the longest; None beyond the bounds, where it never ends."""
    if any(each.code == "out_of_bounds" for each in lint(policy)):
        return None
    retry, times = policy.retry, policy.timeouts
    waits = [retry.longest_wait_s(number) for number in range(1, retry.attempts)]
    needed = retry.attempts * times.start_to_close_s + sum(waits)
    left = times.schedule_to_close_s - (needed - times.start_to_close_s)
    gets = max(0.0, min(times.start_to_close_s, left))
    return Schedule(
        [f"{each:g}" for each in waits],
        f"{retry.attempts} × {times.start_to_close_s:g} s + {sum(waits):g} s of waits = "
        f"{needed:g} s of {times.schedule_to_close_s:g} s; the last attempt gets {gets:g} s.",
    )


@dataclass(frozen=True, slots=True)
class Conflict:
    """One knob on which two people differ: as it was, as it is now, as it was typed."""

    path: str
    was: str
    now: str
    yours: str
    both: bool


def conflict(was: Mapping[str, Any], now: Mapping[str, Any], draft: Draft) -> list[Conflict]:
    """Field by field what somebody else changed, and what was typed meanwhile."""
    old, new = flat(was), flat(now)
    mine = flat(draft.policy.to_json()) if draft.policy else old
    return [
        Conflict(path, told(old.get(path)), told(new.get(path)), told(mine.get(path)),
                 new.get(path) != old.get(path) and mine.get(path) not in (old.get(path),
                                                                          new.get(path)))
        for path in sorted({*old, *new, *mine})
        if not old.get(path) == new.get(path) == mine.get(path)
    ]  # fmt: skip
