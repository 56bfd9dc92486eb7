"""Reasoning travels with its call (T19): whose it is, and who demands it.

It is never edited, re-signed or moved alone; that of one provider is never sent to another.
"""

from collections.abc import Iterable, Sequence

from ledger.transcripts.neutral import Call, Opaque, OpaqueKind, Part, Role, Text
from ledger.transcripts.profiles import ANYBODY, Profile, Reasoning

NEVER_DEMANDED = (Reasoning.NONE, Reasoning.OPTIONAL)


def accepted(part: Opaque, profile: Profile) -> bool:
    """Whether this provider takes a piece of reasoning."""
    if profile.reasoning is Reasoning.NONE:
        return False
    takes = {profile.shape.name, *profile.reasoning_formats}
    return part.format in takes or ANYBODY in takes


def is_reasoning(part: Part) -> bool:
    return isinstance(part, Opaque) and part.kind is OpaqueKind.REASONING


def has_reasoning(parts: Iterable[Part], profile: Profile) -> bool:
    """Whether a reply brings reasoning of this provider: a part, or a signature on its first call.

    The signature of parallel calls stands on the first (transcripts, part a, Gemini).
    """
    signed: bool | None = None
    for part in parts:
        if isinstance(part, Opaque) and is_reasoning(part) and not profile.signatures:
            if accepted(part, profile):
                return True
        if isinstance(part, Call) and signed is None:
            signed = any(name in part.opaque for name in profile.signatures)
    return bool(signed)


def lacking(told: Sequence[tuple[Role, Sequence[Part]]], profile: Profile) -> list[int]:
    """The places of the replies whose calls come without the reasoning that is asked for.

    Nothing is asked before some reply brings reasoning, since a conversation without any was held
    without. Where only the steps since the user last spoke are looked at, what stands before is
    free; where only the first of them is, those behind the first with reasoning are.
    """
    asked = profile.reasoning
    if asked in NEVER_DEMANDED:
        return []
    begin = 0 if asked is Reasoning.WITH_CALLS else _last_spoken(told)
    replies = [
        (place, parts)
        for place, (role, parts) in enumerate(told)
        if place >= begin and role is Role.ASSISTANT
    ]
    bring = [place for place, parts in replies if has_reasoning(parts, profile)]
    if not bring:
        return []
    end = bring[0] if asked is Reasoning.OPENING else len(told)
    calls = (place for place, parts in replies if any(isinstance(part, Call) for part in parts))
    brought = set(bring)
    return [place for place in calls if place < end and place not in brought]


def _last_spoken(told: Sequence[tuple[Role, Sequence[Part]]]) -> int:
    """Where the user last spoke: in a message of their own, or beside results."""
    for place in range(len(told) - 1, -1, -1):
        role, parts = told[place]
        if role is Role.USER or (role is Role.TOOL and any(isinstance(p, Text) for p in parts)):
            return place
    return 0
