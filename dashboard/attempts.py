"""What the page of one attempt shows: its facts, beside those of another where asked for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from dashboard import histories, payloads, zones
from dashboard.payloads import FROM_TOOL, Payload
from ledger import ids, masking, masks, partials
from ledger.errors import NotFound
from ledger.masks import Hidden
from ledger.models import Attempt, Evidence, ToolCall
from ledger.vocabulary import spoken

READ_BYTES = 4 * payloads.SHOWN_CHARACTERS
"""How much partial output is read for what is shown of it, so that whole secrets are masked."""


@dataclass(frozen=True, slots=True)
class AttemptPage:
    """One attempt beside another: facts row by row where either has one, and what it left."""

    attempt: Attempt
    rows: list[tuple[str, str, str]]
    compared: Attempt | None
    others: list[int]
    outcome: str
    error: Payload | None
    partial: Payload | None
    evidence: list[Evidence]


def page_of(call: ToolCall, number: int, compare: int | None, now: datetime) -> AttemptPage:
    """One attempt of a call. Raises NotFound where it is not claimed yet."""
    attempts = call.attempts.select_related("worker").order_by("fence")
    found = {row.fence: row for row in attempts}
    if number not in found or (compare is not None and compare not in found):
        raise NotFound(noun="attempt")
    hidden = masks.of(call)
    one, other = found[number], found.get(compare) if compare is not None else None
    sides = [_facts(each, now) if each else {} for each in (one, other)]
    return AttemptPage(
        attempt=one,
        rows=list(_beside(*sides)),
        compared=other,
        others=[fence for fence in found if fence != number],
        outcome=histories.outcome_of(one, now),
        error=_error(one, hidden),
        partial=partial_of(call, one, hidden),
        evidence=list(Evidence.objects.filter(attempt=one).order_by("at").defer("body")),
    )


def _beside(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, value in one.items():
        against = other.get(name, "")
        if value or against:
            yield name, value, against


def _facts(row: Attempt, now: datetime) -> dict[str, str]:
    """The facts of an attempt as texts, in the order in which they came about."""
    return {
        "kind": str(row.kind),
        "granted by": spoken(row.granted_by),
        "worker": f"{row.worker.name} on {row.worker.host}, process {row.worker.pid}",
        "fence": f"{row.fence}, kept by {row.fence_kind}",
        "effect key": masking.masked_text(row.effect_key),
        "traceparent": row.traceparent or "",
        "claimed": _instant(row.claimed_at),
        "crossed": _instant(row.crossed_at),
        "lease until": _instant(row.lease_until),
        "fence lost": _instant(row.fence_lost_at),
        "ended": _instant(row.ended_at),
        "outcome": histories.outcome_of(row, now),
        "means for the effect": spoken(row.means or ""),
        "error type": row.error_type,
        "finding": spoken(row.finding or ""),
        "proof of death": spoken(f"{row.dead_proof} {_instant(row.dead_at)}").strip(),
        "denial unlocks": _instant(row.unlocks_at),
        "cursor": masking.masked_text(row.cursor or ""),
    }


def _instant(at: datetime | None) -> str:
    return zones.written(at, ms=True) if at else ""


def _error(row: Attempt, hidden: Hidden) -> Payload | None:
    if not row.error_message:
        return None
    return payloads.of_text(row.error_message, title="Error", source=FROM_TOOL, known=hidden.texts)


def partial_of(
    call: ToolCall, row: Attempt, hidden: Hidden, *, title: str = "Partial output",
    most: int = payloads.SHOWN_CHARACTERS,
) -> Payload | None:  # fmt: skip
    """What an attempt stored while it ran, its beginning; size and digest are those of all."""
    found = partials.of_attempt(row.id, READ_BYTES)
    if found is None:
        return None
    shown: dict[str, Any] = {
        "title": title,
        "source": FROM_TOOL,
        "size_bytes": found.size_bytes,
        "sha256": found.sha256,
        "known": hidden.texts,
        "download": reverse("calls-partial", args=[ids.shown("call", call.id), row.fence]),
    }
    if found.truncated or len(found.text) > most:
        is_whole = not found.truncated
        return payloads.of_beginning(found.text, most=most, is_whole=is_whole, **shown)
    return payloads.of_text(found.text, **shown)


def whole_partial(call: ToolCall, number: int) -> bytes:
    """All that an attempt stored, for a download, masked. Raises NotFound."""
    row = call.attempts.filter(fence=number).first()
    body = partials.whole_of(row.id) if row else b""
    if not body:
        raise NotFound(noun="partial output")
    text = body.decode("utf-8", "replace")
    masked = masks.of(call).text(text)
    return body if masked == text else masked.encode()
