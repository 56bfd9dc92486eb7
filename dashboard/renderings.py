"""What would be sent to a provider now, as its own rules see it: for looking, never for sending."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard import payloads
from ledger import conversations, masks, rendering
from ledger.errors import LedgerError
from ledger.models import Session, ToolCall
from ledger.rendering import SENT, STORED, Wanted
from ledger.transcripts.profiles import profiles

USUAL = "anthropic"
CALLS_MAX = 1_000
"""Above so many calls a session is checked for one provider at a time."""
HEAD_CALLS_MAX = 100
"""Above so many calls the head of a session's page leads to the check instead of making it."""


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
        known=masks.texts_of(session),
    )  # fmt: skip
    return shown | {"found": found, "body": body, "checked": _checked(session)}


@dataclass(frozen=True, slots=True)
class Pairing:
    """Whether every provider would take the session: how many do, and what the others refuse."""

    profiles: int
    refusing: list[Checked]

    @property
    def taking(self) -> int:
        return self.profiles - len(self.refusing)


def pairing(session: Session) -> Pairing | None:
    """The pairing for the head of a session's page; None for a long one, or an empty one."""
    checked = _checked(session, HEAD_CALLS_MAX)
    if not checked:
        return None
    return Pairing(len(checked), [each for each in checked if each.faults])


def _checked(session: Session, calls_max: int = CALLS_MAX) -> list[Checked] | None:
    """Every provider's verdict on the session, read once; None where that would be too long."""
    if ToolCall.objects.filter(session=session)[: calls_max + 1].count() > calls_max:
        return None
    with rendering.one_instant():
        read = conversations.read(session)
    providers = [rendering.profile_named(name) for name in sorted(profiles())]
    found = rendering.refusals(read, providers)
    return [
        Checked(each.name, str(refusal or ""))
        for each, refusal in zip(providers, found, strict=True)
    ]
