"""What a policy says of a tool: recovery class, the four timeouts, the retry policy, the probe.

Frozen, with units, refusing what cannot work (R26, R41). A policy is stored as the JSON that
`to_json` gives and read back by `from_json`; the presets per class are data below. Durations
are seconds. Source of the numbers: semantics, sections 2 and 4. No Django import.
"""

import random
import re
import string
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ledger.errors import UnsafePolicy
from ledger.vocabulary import Boundary, Cause, FailurePoint, RecoveryClass

CANNOT_BE_RETRIED = frozenset({Cause.AUTH, Cause.PERMISSION})
SECOND_PERSON = ("never", "always")
"""Whether a resolution of this tool's calls needs a second person's approval."""
DAY_S = 86400
SHORTEST_WINDOW_S = 5.0
RUNBOOK_MAX = 500
MASKS_MAX, MASK_CHARACTERS_MAX = 100, 300
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[!-~]*)?")
_MASK = re.compile(r"/(?:arguments|result)/(?:[^~]|~[01])+")
_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutPolicy:
    """The four timeouts of a call, named and meant as Temporal does; seconds, all finite."""

    schedule_to_start_s: float
    start_to_close_s: float
    schedule_to_close_s: float
    heartbeat_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The six knobs (R41). `attempts` counts the first; unlimited cannot be written."""

    attempts: int = 5
    initial_interval_s: float = 1.0
    factor: float = 2.0
    interval_cap_s: float = 30.0
    jitter: bool = True
    not_retried: frozenset[Cause] = frozenset(
        {Cause.AUTH, Cause.PERMISSION, Cause.VALIDATION, Cause.NOT_FOUND, Cause.TOOL_UNKNOWN}
    )

    def longest_wait_s(self, after_attempt: int) -> float:
        """The wait after attempt n without jitter: min(initial x factor^(n-1), cap)."""
        try:
            grown = self.initial_interval_s * self.factor ** (after_attempt - 1)
        except OverflowError:
            return self.interval_cap_s
        return min(grown, self.interval_cap_s)

    def wait_s(self, after_attempt: int, *, retry_after_s: float | None = None) -> float:
        """The wait before the next attempt, jittered; Retry-After only lengthens it."""
        wait = self.longest_wait_s(after_attempt)
        if self.jitter:
            wait = random.uniform(wait / 2, wait)  # noqa: S311 spreads load, guards nothing
        if retry_after_s is not None and retry_after_s >= 0:
            wait = max(wait, retry_after_s) * random.uniform(1.0, 1.1)  # noqa: S311
        return wait


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePolicy:
    """How the outside is asked whether an effect happened (R28); a no counts if authoritative."""

    authoritative: bool = False
    timeout_s: float = 10.0
    interval_s: float = 30.0
    attempts: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbooks:
    """A runbook for each failure point, as a web address; empty where the tool's one serves."""

    before_start: str = ""
    during_execution: str = ""
    after_execution: str = ""
    during_handoff: str = ""


assert [each.name for each in fields(Runbooks)] == list(FailurePoint)  # noqa: S101


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPolicy:
    """All that decides how a call is executed and recovered. Never part of a submit (R17)."""

    recovery_class: RecoveryClass
    timeouts: TimeoutPolicy
    retry: RetryPolicy
    recovery_window_s: float
    review_s: float
    boundary: Boundary = Boundary.AT_START
    key_template: str = ""
    probe: ProbePolicy | None = None
    in_flight_grace_s: float = 30.0
    tool_error_means: str = "effect_unknown"
    retries_tool_errors: bool = False
    schedule_to_start_reschedules: bool = False
    repeat_start: bool = False
    delivery_delay_s: float = 10.0
    second_person: str = "never"
    hold_dependents: bool = True
    replay_reads_s: float = 0.0
    keep_running: bool = False
    cancel_parked: bool = False
    runbook: str = ""
    runbooks: Runbooks = Runbooks()
    masked: tuple[str, ...] = ()

    @property
    def armed_window_s(self) -> float:
        """The recovery window as it is armed: a late sweep's first step must find it open."""
        return max(self.recovery_window_s, SHORTEST_WINDOW_S)

    def runbook_at(self, failure_point: str) -> str:
        """What to do first where the break fell there; empty where nothing is named."""
        own = getattr(self.runbooks, failure_point) if failure_point else ""
        return own or self.runbook

    def to_json(self) -> dict[str, Any]:
        """A JSON object with every knob, sets sorted."""
        document = asdict(self)
        document["masked"] = list(self.masked)
        document["retry"]["not_retried"] = sorted(str(each) for each in self.retry.not_retried)
        return document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "CallPolicy":
        """Read what `to_json` wrote, or a document that names only what differs from the preset.

        Not linted: what was saved under the rules of its day is read for as long as calls keep it.
        """
        return unlinted(document)


def _preset(
    recovery_class: RecoveryClass,
    *,
    start: float,
    run: float,
    close: float,
    heartbeat: float,
    attempts: int,
    window: float,
    review: float,
) -> CallPolicy:
    means = "no_effect" if recovery_class is RecoveryClass.READ_ONLY else "effect_unknown"
    return CallPolicy(
        recovery_class=recovery_class,
        timeouts=TimeoutPolicy(
            schedule_to_start_s=float(start),
            start_to_close_s=float(run),
            schedule_to_close_s=float(close),
            heartbeat_s=float(heartbeat),
        ),
        retry=RetryPolicy(attempts=attempts),
        recovery_window_s=float(window),
        review_s=float(review),
        tool_error_means=means,
    )


R = RecoveryClass
PRESETS: dict[RecoveryClass, CallPolicy] = {
    preset.recovery_class: preset
    for preset in (
        _preset(R.READ_ONLY, start=30, run=30, close=240, heartbeat=15, attempts=5,
                window=60, review=DAY_S),
        _preset(R.IDEMPOTENT_WRITE, start=30, run=30, close=240, heartbeat=15, attempts=5,
                window=300, review=DAY_S),
        _preset(R.SIDE_EFFECT, start=30, run=60, close=300, heartbeat=15, attempts=2,
                window=300, review=4 * 3600),
        _preset(R.LONG_RUNNING, start=60, run=1800, close=DAY_S, heartbeat=15, attempts=3,
                window=900, review=DAY_S),
        _preset(R.PROVIDER_AUTH, start=10, run=20, close=60, heartbeat=10, attempts=2,
                window=0, review=DAY_S),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bound:
    """The range of one knob; `auth` narrows the upper end for `provider_auth`."""

    low: float
    high: float
    auth: float | None = None


BOUNDS: dict[str, Bound] = {
    "timeouts.schedule_to_start_s": Bound(1, 3600),
    "timeouts.start_to_close_s": Bound(0.1, DAY_S, auth=60),
    "timeouts.schedule_to_close_s": Bound(0.1, 30 * DAY_S, auth=15 * 60),
    "timeouts.heartbeat_s": Bound(0.5, DAY_S),
    "retry.attempts": Bound(1, 20, auth=3),
    "retry.initial_interval_s": Bound(0.1, 60),
    "retry.factor": Bound(1, 10),
    "retry.interval_cap_s": Bound(1, 3600),
    "recovery_window_s": Bound(0, 3600),
    "review_s": Bound(60, 7 * DAY_S),
    "in_flight_grace_s": Bound(0, 600),
    "delivery_delay_s": Bound(0, 3600),
    "replay_reads_s": Bound(0, DAY_S),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What the linter says of a policy. An `error` is not saved, a `warning` is shown."""

    level: str
    code: str
    sentence: str


def policy_for(document: dict[str, Any], *, gives_handles: bool = True) -> CallPolicy:
    """Build a policy from a document that names what differs from its class's preset.

    `gives_handles` is whether its tool does. Raises UnsafePolicy for an unknown knob, a value of
    the wrong type, or one out of bounds. An absent recovery class means `side_effect` (R18).
    """
    policy = unlinted(document)
    found = lint(policy, gives_handles=gives_handles)
    errors = [each for each in found if each.level == "error"]
    if errors:
        raise UnsafePolicy(detail=" ".join(each.sentence for each in errors))
    return policy


def unlinted(document: dict[str, Any]) -> CallPolicy:
    """The same without the linter, to show what it finds. Raises UnsafePolicy for knobs and types.

    Such a policy is shown and never saved.
    """
    given = dict(document)
    try:
        recovery_class = RecoveryClass(given.pop("recovery_class", None) or R.SIDE_EFFECT)
    except ValueError as error:
        raise UnsafePolicy(
            detail=f"{document.get('recovery_class')!r} is no recovery class; "
            f"take one of {', '.join(RecoveryClass)}."
        ) from error
    policy: CallPolicy = _overlay(PRESETS[recovery_class], given, "")
    return policy


def _overlay(base: Any, given: dict[str, Any], path: str) -> Any:
    known = {each.name for each in fields(base)}
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise UnsafePolicy(
                detail=f"A policy has no knob {path}{name}; it has {', '.join(sorted(known))}."
            )
        changes[name] = _knob(base, name, value, f"{path}{name}")
    return replace(base, **changes)


def _knob(base: Any, name: str, value: Any, path: str) -> Any:
    present = getattr(base, name)
    if name == "probe" and value is None:
        return None
    if name in ("timeouts", "retry", "probe", "runbooks"):
        if not isinstance(value, dict):
            raise UnsafePolicy(detail=f"{path} must be an object.")
        return _overlay(present or ProbePolicy(), value, f"{path}.")
    try:
        return _typed(present, value)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnsafePolicy(detail=f"{path} cannot be {value!r}: {error}.") from error


def _typed(present: Any, value: Any) -> Any:
    if isinstance(present, bool):
        if not isinstance(value, bool):
            raise TypeError("it is true or false")
        return value
    if isinstance(present, frozenset):
        return frozenset(Cause(each) for each in value)
    if isinstance(present, tuple):
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise TypeError("it is a list of texts")
        return tuple(value)
    if isinstance(present, Boundary):
        return Boundary(value)
    if isinstance(present, str):
        if not isinstance(value, str):
            raise TypeError("it is a text")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("it is a number")
    return type(present)(value)


def lint(policy: CallPolicy, *, gives_handles: bool = True) -> list[Finding]:
    """Say what is unsafe or cannot work in a policy (R26; semantics, section 2, rule 1).

    `gives_handles` is whether its tool does.
    """
    # Beyond the bounds the sum over the attempts could take for ever.
    return _out_of_bounds(policy) or [
        *_arithmetic(policy),
        *_handle_rules(policy, gives_handles),
        *_class_rules(policy),
    ]


def _out_of_bounds(policy: CallPolicy) -> list[Finding]:
    is_auth = policy.recovery_class is R.PROVIDER_AUTH
    findings = []
    for path, bound in BOUNDS.items():
        value: Any = policy
        for name in path.split("."):
            value = getattr(value, name)
        high = bound.auth if is_auth and bound.auth is not None else bound.high
        if not bound.low <= value <= high:
            findings.append(
                Finding("error", "out_of_bounds", f"{path} is {value}; it must be finite and lie "
                        f"between {bound.low} and {high}.")
            )  # fmt: skip
    return findings


def _arithmetic(policy: CallPolicy) -> list[Finding]:
    times, retry = policy.timeouts, policy.retry
    waits = sum(retry.longest_wait_s(n) for n in range(1, retry.attempts))
    needed = retry.attempts * times.start_to_close_s + waits
    sum_text = (
        f"{retry.attempts} attempts x {times.start_to_close_s:g} s + {waits:g} s of backoff = "
        f"{needed:g} s, schedule-to-close is {times.schedule_to_close_s:g} s"
    )
    findings = []
    # A parked job leaves start-to-close behind, so the sum says nothing of long_running.
    if policy.recovery_class is not R.LONG_RUNNING and needed > times.schedule_to_close_s:
        findings.append(
            Finding("error", "attempts_do_not_fit", f"{sum_text}: the last attempt cannot happen. "
                    "Lower the attempts or start-to-close, or lengthen schedule-to-close.")
        )  # fmt: skip
    elif needed + times.schedule_to_start_s > times.schedule_to_close_s:
        findings.append(
            Finding("warning", "attempts_barely_fit", f"{sum_text}; with "
                    f"{times.schedule_to_start_s:g} s in the queue the last attempt may not fit.")
        )  # fmt: skip
    if times.heartbeat_s >= times.start_to_close_s:
        findings.append(
            Finding("error", "heartbeat_too_long", f"heartbeat ({times.heartbeat_s:g} s) is not "
                    f"shorter than start-to-close ({times.start_to_close_s:g} s), so it could "
                    "never fire. Shorten it.")
        )  # fmt: skip
    if times.schedule_to_start_s >= times.schedule_to_close_s:
        findings.append(
            Finding("error", "start_too_long", f"schedule-to-start ({times.schedule_to_start_s:g} "
                    f"s) is not shorter than schedule-to-close ({times.schedule_to_close_s:g} s), "
                    "so it could never fire. Shorten it.")
        )  # fmt: skip
    return findings


def _handle_rules(policy: CallPolicy, gives_handles: bool) -> list[Finding]:
    if policy.recovery_class is not R.LONG_RUNNING or gives_handles:
        return []
    return [
        Finding("error", "no_handles", "A long_running tool is resumed by its handle, and this one "
                "gives none. Declare how it is asked after (a poll in Python, job over HTTP), or "
                "take another class.")
    ]  # fmt: skip


def is_address(text: str) -> bool:
    """Whether a text is one web address (http or https, no user) and nothing else."""
    return _ADDRESS.fullmatch(text) is not None


def _is_mask(pointer: str) -> bool:
    """Whether it is a JSON pointer into the arguments or the result (RFC 6901, section 3)."""
    return len(pointer) <= MASK_CHARACTERS_MAX and bool(_MASK.fullmatch(pointer))


def _names_arguments_only(template: str) -> bool:
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        return False
    fields = [part[1:] for part in parts if part[1] is not None]
    return all(
        _ARGUMENT.fullmatch(name or "") and not spec and not how for name, spec, how in fields
    )


def _class_rules(policy: CallPolicy) -> list[Finding]:
    findings = []
    if policy.recovery_class is R.SIDE_EFFECT and policy.retry.attempts > 2 and not policy.probe:
        findings.append(
            Finding("error", "repeats_without_probe", f"{policy.retry.attempts} attempts for a "
                    "side effect without a probe: at most 2 are possible, the second only for a "
                    "call proven not begun. Lower the attempts or name a probe.")
        )  # fmt: skip
    if policy.recovery_class is R.IDEMPOTENT_WRITE and not policy.key_template:
        findings.append(
            Finding("error", "no_key_template", "An idempotent_write needs key_template, over the "
                    "arguments, such as 'path:{path}', or it cannot be told from a side effect.")
        )  # fmt: skip
    if policy.recovery_class is not R.READ_ONLY and policy.delivery_delay_s == 0:
        findings.append(
            Finding("warning", "no_time_to_undo", "delivery_delay_s is 0, so a resolution cannot "
                    "be taken back. Only a read_only tool needs no time for that: give it seconds.")
        )  # fmt: skip
    if not _names_arguments_only(policy.key_template):
        findings.append(
            Finding("error", "key_template", "key_template takes arguments by name and nothing "
                    "else, such as 'path:{path}': no place, attribute, item, conversion or width.")
        )  # fmt: skip
    if not CANNOT_BE_RETRIED <= policy.retry.not_retried:
        findings.append(
            Finding("error", "auth_is_never_retried", "auth and permission stay in "
                    "retry.not_retried: a refusal of rights does not pass by waiting.")
        )  # fmt: skip
    if policy.second_person not in SECOND_PERSON:
        findings.append(
            Finding("error", "second_person", f"second_person is {' or '.join(SECOND_PERSON)}.")
        )
    if len(policy.runbook) > RUNBOOK_MAX:
        findings.append(
            Finding("error", "runbook_too_long", f"runbook has {len(policy.runbook)} characters of "
                    f"at most {RUNBOOK_MAX}. Keep the text elsewhere, and name its address here.")
        )  # fmt: skip
    for point, runbook in asdict(policy.runbooks).items():
        if runbook and not (is_address(runbook) and len(runbook) <= RUNBOOK_MAX):
            findings.append(
                Finding("error", "runbook_address", f"runbooks.{point} is no web address of at "
                        f"most {RUNBOOK_MAX} characters. Begin it with https:// or http://, or "
                        "leave it empty: then runbook serves.")
            )  # fmt: skip
    if len(policy.masked) > MASKS_MAX or not all(map(_is_mask, policy.masked)):
        findings.append(
            Finding("error", "masked", f"masked lists up to {MASKS_MAX} JSON pointers that begin "
                    "with /arguments/ or /result/, such as /arguments/card/number; * stands for "
                    "any one member or item.")
        )  # fmt: skip
    if policy.tool_error_means not in ("no_effect", "effect_unknown"):
        findings.append(
            Finding("error", "tool_error_means", "tool_error_means is no_effect or effect_unknown.")
        )  # fmt: skip
    return findings


@dataclass(frozen=True, slots=True)
class Loosening:
    """A way to make a policy less careful: its knob, and whether a change goes that way."""

    path: str
    loosens: Callable[[CallPolicy, CallPolicy], bool]


STRICTEST_FIRST = (
    R.SIDE_EFFECT, R.LONG_RUNNING, R.PROVIDER_AUTH, R.IDEMPOTENT_WRITE, R.READ_ONLY,
)  # fmt: skip
"""The recovery classes by how much they let be repeated while an effect is possible."""

LOOSENINGS: tuple[Loosening, ...] = (
    Loosening("recovery_class", lambda old, new: _strictness(old) < _strictness(new)),
    Loosening("second_person", lambda old, new: old.second_person != "never" == new.second_person),
    Loosening("delivery_delay_s", lambda old, new: new.delivery_delay_s < old.delivery_delay_s),
    Loosening(
        "retry.attempts",
        lambda old, new: (
            new.recovery_class is R.SIDE_EFFECT and new.retry.attempts > old.retry.attempts
        ),
    ),
)
"""What loosening a policy is: it is confirmed by typing (console, section 7)."""


def _strictness(policy: CallPolicy) -> int:
    return STRICTEST_FIRST.index(policy.recovery_class)


def loosened(before: CallPolicy, after: CallPolicy) -> list[str]:
    """The knobs by which a policy is less careful than the one before; empty where it is not."""
    return [each.path for each in LOOSENINGS if each.loosens(before, after)]
