"""What a provider would refuse, in its own words; pure, linear, and it never changes an entry.

`rules` finds, the profile words: a rule is asked only where the profile has its code.
Source: transcripts, part a.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ledger.transcripts.matching import match, placed
from ledger.transcripts.neutral import Call, Entry, Role
from ledger.transcripts.profiles import Profile
from ledger.transcripts.rules import RULES, Finding, View


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: where it shows (entry and part, from 0) and what the provider answers."""

    code: str
    at: int
    part: int
    provider_id: str
    text: str
    certainty: str

    def to_json(self) -> dict[str, Any]:
        """The violation as the API gives it."""
        return asdict(self)


def check(
    entries: Sequence[Entry],
    profile: Profile,
    *,
    around: Mapping[str, Any] | None = None,
    open_calls: bool = False,
) -> list[Violation]:
    """Every broken rule, in the order of the entries; empty for what the provider accepts.

    `entries` as `Shape.read` groups them. `around` is the request that they stand in, where it is
    known: rules about it are asked only then. `open_calls` allows calls of the last step to be
    without results.
    """
    view = _view(entries, profile, around, open_calls)
    found = [
        (code, finding)
        for code, rule in RULES.items()
        if code in profile.refusals
        for finding in rule(view)
    ]
    numbers = _numbers(view) if found else {}
    violations = [
        violation for code, finding in found for violation in _told(code, finding, profile, numbers)
    ]
    return sorted(violations, key=lambda each: (each.at, each.part))


def _view(
    entries: Sequence[Entry],
    profile: Profile,
    around: Mapping[str, Any] | None,
    open_calls: bool,
) -> View:
    visible = [(at, entry) for at, entry in enumerate(entries) if not entry.screen_only]
    steps, strays = match(visible, profile)
    open_from = _last_step(visible, profile.shape.itemised) if open_calls else math.inf
    calls = [call for at, entry in visible for call in placed(at, entry, Call)]
    return View(visible, profile, around, steps, strays, calls, open_from)


def _last_step(visible: Sequence[tuple[int, Entry]], itemised: bool) -> float:
    """Where the last step begins if nothing but its results stands behind it."""
    behind = len(visible)
    while behind and visible[behind - 1][1].role is Role.TOOL:
        behind -= 1
    begin = behind
    while begin and visible[begin - 1][1].role is Role.ASSISTANT and (itemised or begin == behind):
        begin -= 1
    return visible[begin][0] if begin < behind else math.inf


def _numbers(view: View) -> dict[int, int]:
    """The message at each place as the provider counts: without a system text that is apart."""
    numbers, count = {}, 0
    for at, entry in view.entries:
        numbers[at] = count
        count += not (view.profile.system_apart and entry.role is Role.SYSTEM)
    return numbers


def _told(
    code: str, finding: Finding, profile: Profile, numbers: Mapping[int, int]
) -> Iterator[Violation]:
    refusal = profile.refusals[code]
    ids = finding.ids or ("",)
    for provider_id in ids if "{id}" in refusal.text else ids[:1]:
        text = refusal.text.format(
            at=numbers[finding.at],
            next=numbers[finding.at] + 1,
            previous=numbers[finding.at] - 1,
            part=finding.part,
            id=provider_id,
            ids=", ".join(ids),
            n=finding.wanted,
            m=finding.there,
            role=finding.role,
            before=finding.before,
            kind=finding.kind,
            family=finding.family,
        )
        yield Violation(code, finding.at, finding.part, provider_id, text, refusal.certainty)
