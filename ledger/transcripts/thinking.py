"""Reasoning travels with its call (T19): whose it is, and who demands it.

It is never edited, re-signed or moved alone; that of one provider is never sent to another.
"""

from collections.abc import Iterable

from ledger.transcripts.neutral import Call, Opaque, OpaqueKind, Part
from ledger.transcripts.profiles import Profile, Reasoning


def accepted(part: Opaque, profile: Profile) -> bool:
    """Whether this provider takes a piece of reasoning."""
    if profile.reasoning is Reasoning.NONE:
        return False
    return part.format == profile.shape.name or part.format in profile.reasoning_formats


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


def demanded(replies: Iterable[Iterable[Part]], profile: Profile) -> bool:
    """Whether steps with calls are refused without reasoning: once any step brings it."""
    if profile.reasoning is not Reasoning.WITH_CALLS:
        return False
    return any(has_reasoning(reply, profile) for reply in replies)
