"""What a policy should be warned of that only its tool and its history show. Pure.

The linter of `ledger/policies.py` judges a policy by itself; here it is held against the
annotations as received, the measured attempts and the people who could agree. Only warnings: a
hint is never trusted enough to forbid. Source: console, section 16.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger import masking
from ledger.policies import CallPolicy, Finding
from ledger.vocabulary import RecoveryClass

R = RecoveryClass
LONGEST_SILENCE_S = 60.0
ARGUMENTS = "/arguments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known beside the policy. `p99_s` is None where too little was measured."""

    annotations: Mapping[str, Any]
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    gives_handles: bool = True
    p99_s: float | None = None
    approvers: int = 2


def advise(policy: CallPolicy, around: Surroundings) -> list[Finding]:
    """The warnings, each with a code and a sentence."""
    return [Finding("warning", code, sentence) for code, sentence in _warnings(policy, around)]


def _warnings(policy: CallPolicy, around: Surroundings) -> Iterator[tuple[str, str]]:
    times = policy.timeouts
    if claim := trusts_more(policy.recovery_class, around.annotations):
        yield "trusts_more_than_hints", claim
    if times.start_to_close_s > LONGEST_SILENCE_S and times.heartbeat_s > LONGEST_SILENCE_S:
        yield (
            "long_silence",
            f"A lost worker is noticed only after {times.heartbeat_s:g} s of silence. "
            f"Shorten heartbeat to {LONGEST_SILENCE_S:g} s or less.",
        )
    if around.p99_s is not None and times.start_to_close_s < around.p99_s:
        yield (
            "below_measured",
            f"start-to-close ({times.start_to_close_s:g} s) is below the 99th percentile of "
            f"attempts that ended well ({around.p99_s:.1f} s): some of these would be cut off.",
        )
    if policy.second_person != "never" and around.approvers < 2:
        yield (
            "no_second_person",
            "A second person is wanted and fewer than two people may approve: nobody agrees to "
            "a request of their own.",
        )
    if unmasked := masking.unmasked(around.input_schema, _in_arguments(policy.masked)):
        named = ", ".join(f"{ARGUMENTS}{pointer}" for pointer in unmasked)
        yield (
            "looks_secret",
            f"{named}: by its name this is secret, and nothing masks it. Put it among the masked "
            "fields, or mark it in the tool's schema.",
        )


def _in_arguments(pointers: Iterable[str]) -> Iterator[str]:
    """The pointers into the arguments, as seen from there."""
    for each in pointers:
        if each.startswith(f"{ARGUMENTS}/"):
            yield each.removeprefix(ARGUMENTS)


def trusts_more(recovery_class: RecoveryClass, annotations: Mapping[str, Any]) -> str:
    """The sentence where a class trusts a tool more than its own server's hints do; else empty."""
    if recovery_class is R.READ_ONLY and annotations.get("readOnlyHint") is False:
        return "The tool's server says that it does not only read; our class repeats it freely."
    if recovery_class in (R.READ_ONLY, R.IDEMPOTENT_WRITE):
        if annotations.get("destructiveHint") is True:
            return "The tool's server says that it destroys; our class repeats it."
        if recovery_class is R.IDEMPOTENT_WRITE and annotations.get("idempotentHint") is False:
            return "The tool's server says that a second call does more than the first."
    return ""
