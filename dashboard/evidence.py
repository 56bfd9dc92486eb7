"""What the page of one piece of evidence shows: where it came from, and its body, masked."""

from dataclasses import dataclass

from django.urls import reverse

from dashboard import payloads
from dashboard.payloads import FROM_PERSON, FROM_TOOL, Payload
from ledger import evidence, ids, masks
from ledger.calls import Reader
from ledger.masks import Hidden
from ledger.models import Evidence, ToolCall
from ledger.permissions import Person
from recovery.models import Incident


@dataclass(frozen=True, slots=True)
class EvidencePage:
    """One piece of evidence, the call that it is about, and the incidents of that call."""

    row: Evidence
    body: Payload
    hidden: Hidden
    incidents: list[Incident]

    @property
    def call(self) -> ToolCall:
        return self.row.call

    @property
    def shown(self) -> str:
        return ids.shown("evidence", self.row.id)


def get(person: Person, evidence_id: str) -> Evidence:
    """A piece of evidence of the person's workspace by its shown id. Raises NotFound."""
    reader = Reader(person.workspace_id)
    return evidence.get(reader=reader, evidence_id=ids.read("evidence", evidence_id))


def page_of(row: Evidence) -> EvidencePage:
    """Read what the page shows."""
    hidden = masks.of(row.call)
    incidents = Incident.objects.filter(call=row.call).order_by("-opened_at")
    return EvidencePage(row, body_of(row, hidden), hidden, list(incidents))


def body_of(row: Evidence, hidden: Hidden, *, raw: bool = False) -> Payload:
    """The body, masked."""
    return payloads.of_body(
        bytes(row.body), raw=raw, media_type=row.media_type, why_not_json=row.why_not_json,
        title="Body", source=FROM_PERSON if row.by_id else FROM_TOOL, sha256=row.sha256,
        size_bytes=row.size_bytes, pointers=hidden.found, known=hidden.texts,
        download=reverse("inbox-evidence-body", args=[ids.shown("evidence", row.id)]),
    )  # fmt: skip


def whole_of(row: Evidence, hidden: Hidden) -> bytes:
    """The body for a download, masked."""
    return payloads.whole_text(bytes(row.body), row.why_not_json, hidden.found, hidden.texts)
