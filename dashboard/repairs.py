"""A pasted or chosen transcript as the pages take it, and the report of a repair as they show it.

Nothing here is stored. A report holds digests and positions alone; entries are described masked.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from dashboard import payloads
from dashboard.payloads import Payload
from ledger import known_calls, masks
from ledger.errors import Invalid
from ledger.imports import copies, plans, receiving
from ledger.imports.receiving import Received
from ledger.models import Session
from ledger.transcripts import refusals
from ledger.transcripts.known import NOTHING_KNOWN
from ledger.transcripts.profiles import UnknownProfile, formats, profile, profiles
from ledger.transcripts.repair import Unrepairable, repair

ROWS_MAX = 200
"""How many lines of each list of a report are drawn; the rest is counted."""
KEPT_BYTES = 1024 * 1024
"""Up to this size what was sent stands in the form again; a chosen file is not kept above it."""

COUNTS = {
    "entries": "entries",
    "calls": "calls",
    "results": "results",
    "orphans": "results without a call",
    "unanswered": "calls without a result",
    "duplicates": "results told twice",
    "displaced": "results out of their place",
    "prompts_repeated": "prompts said twice",
}
CAUSES = {
    "reply_lost_results_kept": "A reply was lost and its results were kept.",
    "spoken_while_tools_ran": "Somebody spoke while tools ran, between a call and its result.",
    "result_written_twice": "A result was written twice.",
    "reply_broke_off": "A reply broke off before it was whole.",
    "result_never_written": "A result was never written.",
    "stream_cut_off": "A stream was cut off within the arguments of a call.",
    "prompt_submitted_twice": "A prompt was submitted twice.",
}


@dataclass(frozen=True, slots=True)
class Report:
    """A report in rows: counts before and after, refusals, changes by kind, likely causes."""

    profile: str
    format: str
    changed: bool
    counts: Sequence[tuple[str, int, int]]
    predicted: Sequence[Mapping[str, Any]]
    changes: Sequence[Mapping[str, Any]]
    causes: Sequence[tuple[str, Sequence[int], str]]
    remaining: Sequence[Mapping[str, Any]]
    renamed: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_sound(self) -> bool:
        """Nothing was wrong, and nothing was changed."""
        return not (self.changed or self.predicted or self.changes)


def report_of(found: Mapping[str, Any]) -> Report:
    """A repair's report, as its JSON gives it."""
    lists = {name: found[name] for name in ("predicted", "changes", "remaining")}
    return Report(
        profile=found["profile"],
        format=found["format"],
        changed=found["changed"],
        counts=[(words, found["before"][n], found["after"][n]) for n, words in COUNTS.items()],
        causes=[
            (CAUSES.get(each["cause"], each["cause"]), each["entries"][:20], each["certainty"])
            for each in found["diagnosis"]
        ],
        renamed=len(found["ids"]),
        left_out={n: len(rows) - ROWS_MAX for n, rows in lists.items() if len(rows) > ROWS_MAX},
        **{name: rows[:ROWS_MAX] for name, rows in lists.items()},
    )


@dataclass(frozen=True, slots=True)
class Sent:
    """What a form sent: the bytes, and the text that stands in the form again."""

    body: bytes
    is_lines: bool
    format: str
    profile: str
    text: str = ""

    def received(self) -> Received:
        """Read it. Raises Invalid without any, TranscriptTooLarge, NotStrict."""
        if not self.body.strip():
            raise Invalid(detail="Paste a transcript, or choose a file. Nothing was sent.")
        kind = "application/x-ndjson" if self.is_lines else "application/json"
        return receiving.received(self.body, content_type=kind, format=self.format)


def sent(request: HttpRequest) -> Sent:
    """The transcript of a form: the file that was chosen, else the text that was pasted."""
    chosen = request.FILES.get("file")
    body = chosen.read() if chosen is not None else request.POST.get("transcript", "").encode()
    text = body.decode(errors="replace") if len(body) <= KEPT_BYTES else ""
    return Sent(
        body=body,
        is_lines=_is_lines(body),
        format=request.POST.get("format", ""),
        profile=request.POST.get("profile", ""),
        text=text,
    )


def _is_lines(body: bytes) -> bool:
    """Whether there are several lines and the first is an object by itself."""
    first, _, rest = body.strip().partition(b"\n")
    if not first.startswith(b"{") or not rest.strip():
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def choices() -> dict[str, Sequence[str]]:
    """The formats that are read and the providers that are repaired for."""
    return {"formats": sorted(formats()), "profiles": sorted(profiles())}


@dataclass(frozen=True, slots=True)
class Mended:
    """A repair for one provider: its report, and the copy, where there is one to give out."""

    report: Report
    copy: Any = None
    viewer: Payload | None = None


def mended(sent_: Sent, session: Session | None = None) -> Mended:
    """Repair what was sent; with a session, by what the ledger knows of its calls.

    Raises what `received` does, TranscriptUnreadable and Invalid. Where the provider would still
    refuse there is a report and no copy.
    """
    received = sent_.received()
    name = sent_.profile or copies.own_profile(received.format)
    known = known_calls.known_of(session) if session is not None else NOTHING_KNOWN
    try:
        with plans.readable(received):
            done = repair(
                received.transcript, format=received.format, profile=profile(name), ledger=known
            )
    except UnknownProfile as refusal:
        raise refusals.unknown(refusal, "profile") from None
    except Unrepairable as refusal:
        if refusal.report is None:
            raise refusals.unrepairable(refusal, name) from None
        return Mended(report_of(refusal.report.to_json()))
    # What the ledger added is masked for people, in the file as on the page.
    copy = masks.in_session(session, done.body) if session is not None else done.body
    return Mended(report_of(done.report.to_json()), copy, viewer_of(copy, name))


def viewer_of(body: Any, name: str) -> Payload:
    """A copy in the payload viewer, masked by names and looks."""
    text = json.dumps(body, ensure_ascii=False)
    raw = text.encode(errors="replace")
    return payloads.of_value(
        body, title=f"Repaired copy for {name}", source="from the transcript, not checked",
        size_bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest(),
    )  # fmt: skip
