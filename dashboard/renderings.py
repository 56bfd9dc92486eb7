"""What would be sent to a provider now, as its own rules see it: for looking, never for sending."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard import payloads
from ledger import conversations, rendering
from ledger.errors import LedgerError, Unrenderable
from ledger.models import Session, ToolCall
from ledger.rendering import SENT, STORED, Wanted
from ledger.transcripts.profiles import profiles

USUAL = "anthropic"
CALLS_MAX = 1_000
"""Above so many calls a session is checked for one provider at a time."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A provider, and what it would refuse of this session; empty where it takes all of it."""

    profile: str
    faults: str = ""


def of(session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
    """One provider's copy with its manifest, or the sentence that says why there is none."""
    names = sorted(profiles())
    profile = str(asked.get("profile", USUAL))[:60]
    copy = STORED if asked.get("copy") == STORED else SENT
    shown: dict[str, Any] = {"profiles": names, "profile": profile, "copy": copy}
    try:
        found = rendering.transcript(session, Wanted(profile=profile, copy=copy))
    except LedgerError as refusal:
        return shown | {"refusal": refusal, "checked": _checked(session)}
    text = json.dumps(found.body, ensure_ascii=False)
    body = payloads.of_value(
        found.body, title=f"What would be sent to {profile}",
        source="rendered from the ledger, secrets masked on this page only",
        size_bytes=len(text.encode(errors="replace")),
        sha256=hashlib.sha256(text.encode(errors="replace")).hexdigest(),
    )  # fmt: skip
    return shown | {"found": found, "body": body, "checked": _checked(session)}


def _checked(session: Session) -> list[Checked] | None:
    """Every provider's verdict on the session, read once; None where that would be too long."""
    if ToolCall.objects.filter(session=session)[: CALLS_MAX + 1].count() > CALLS_MAX:
        return None
    with rendering.one_instant():
        read = conversations.read(session)
    return [_check(read, name) for name in sorted(profiles())]


def _check(read: conversations.Conversation, name: str) -> Checked:
    try:
        rendering.told(read, rendering.profile_named(name), Wanted(profile=name))
    except Unrenderable as refusal:
        return Checked(name, str(refusal))
    return Checked(name)
