"""Exports: a file with rows of many calls is a deed of the person who takes it (console, 14).

A key's export is no deed, since a deed is a person's; the key's last use says when it was read.
"""

from dashboard.models import Deed
from ledger.permissions import Person


def noted(by: Person, what: str, *, target: str, grounds: str) -> None:
    """Write into the audit what a person exported, and what its filter kept."""
    Deed.objects.create(
        workspace_id=by.workspace_id,
        person_id=by.id,
        person_name=by.name,
        deed=f"exported {what}",
        target=target,
        grounds=grounds,
    )
