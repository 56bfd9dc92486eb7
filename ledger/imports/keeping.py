"""The row of an import: found again, read, reverted and discarded.

Reverting and discarding end with the session's next turn: from then on somebody has built on it.
Both are taken under the session's lock, as the opening of a turn is. No row is ever deleted: the
bytes stay, and what an import made stays on its calls.
"""

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from ledger.calls import Reader
from ledger.errors import KeyReused, LedgerError, NotFound
from ledger.models import Import, Session, Turn
from ledger.models.fields import ClockTimestamp


class ImportContinued(LedgerError):
    """The imported session had a turn since: its import can be neither reverted nor discarded."""

    code = "import_continued"
    sentence = (
        "Turn {turn} of this session followed its import, so somebody has built on it. Nothing "
        "was changed. Read the original by the import's address; it is kept."
    )


class ImportReverted(LedgerError):
    """The repaired copy is not given out while the repair is reverted."""

    code = "import_reverted"
    sentence = (
        "The repair of this import was reverted, so only the original is shown, as {format}. "
        "Delete the reversion to have the repaired copy again."
    )


class ImportDiscarded(LedgerError):
    """The import was discarded as a whole."""

    code = "import_discarded"
    sentence = (
        "This import was discarded; its session takes no calls. Nothing was changed. Import the "
        "file again under a new key."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """What makes two imports the same: the file; and the key, which names one file for good."""

    agent_id: UUID
    key: str
    sha256: str
    format: str


def known(name: Name) -> Import | None:
    """The import of this file, or of this key. Raises KeyReused where they disagree."""
    of_key = Import.objects.filter(agent=name.agent_id, key=name.key).first()
    if of_key is not None:
        _refuse_another(of_key, name)
        return of_key
    of_file = Import.objects.filter(
        agent=name.agent_id, sha256=name.sha256, discarded_at__isnull=True
    ).first()
    if of_file is not None:
        _refuse_another(of_file, name)
    return of_file


def _refuse_another(found: Import, name: Name) -> None:
    if found.sha256 != name.sha256:
        raise KeyReused(earlier=f"the import of a file with the digest {found.sha256}")
    if found.format != name.format:
        raise KeyReused(earlier=f"the import of this file as {found.format}")


def get(*, reader: Reader, import_id: UUID) -> Import:
    """One import that this reader may see, without its bytes. Raises NotFound."""
    found = of_reader(reader).filter(id=import_id).first()
    if found is None:
        raise NotFound(noun="import")
    return found


def of_reader(reader: Reader) -> "QuerySet[Import]":
    """The imports that this reader may see, without their bytes."""
    rows = Import.objects.filter(workspace=reader.workspace_id).defer("body")
    return rows if reader.agent_id is None else rows.filter(agent=reader.agent_id)


def turns_of(row: Import) -> int:
    """How many turns the import made; one with a higher number came after it."""
    return int(row.report["made"]["turns"])


def turn_since(row: Import) -> Turn | None:
    """The first turn that followed the import."""
    later = Turn.objects.filter(session=row.session_id, number__gt=turns_of(row))
    return later.order_by("number").first()


def locked(reader: Reader, import_id: UUID) -> Import:
    """The import, with its session's row locked, not continued yet.

    Raises NotFound, ImportContinued.
    """
    row = get(reader=reader, import_id=import_id)
    # Whoever opens a turn holds this row too, so that one of both comes first.
    Session.objects.select_for_update(no_key=True).get(id=row.session_id)
    row.refresh_from_db(fields=["reverted_at", "discarded_at"])
    since = turn_since(row)
    if since is not None:
        raise ImportContinued(turn=since.number)
    return row


def revert(*, reader: Reader, import_id: UUID) -> Import:
    """Show the original instead of the repaired copy; again changes nothing.

    Raises NotFound, ImportContinued, ImportDiscarded.
    """
    return _mark(reader, import_id, reverted=True)


def unrevert(*, reader: Reader, import_id: UUID) -> Import:
    """Show the repaired copy again; again changes nothing. Raises as `revert`."""
    return _mark(reader, import_id, reverted=False)


@transaction.atomic
def _mark(reader: Reader, import_id: UUID, *, reverted: bool) -> Import:
    row = locked(reader, import_id)
    if row.discarded_at is not None:
        raise ImportDiscarded()
    if (row.reverted_at is not None) != reverted:
        moment = ClockTimestamp() if reverted else None
        Import.objects.filter(id=row.id).update(reverted_at=moment)
        row.refresh_from_db(fields=["reverted_at"])
    return row


def original(row: Import) -> bytes:
    """The transcript's bytes as received."""
    return bytes(Import.objects.values_list("body", flat=True).get(id=row.id))
