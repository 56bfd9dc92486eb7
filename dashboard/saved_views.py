"""Saved views: named addresses of a list, each person's own, or shared with the workspace.

A view keeps what the list's table knows of an address, so it holds filters, order and columns and
nothing else. Whoever made it renames, shares and deletes it; an admin deletes what was shared.
Names are other people's text.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.urls import reverse

from dashboard import filters, inbox, listing
from dashboard.filters import Table
from dashboard.models import SavedView
from ledger.errors import Invalid, NotFound
from ledger.permissions import Person, Right
from ledger.transactions import repeatable

EACH_MAX = 50
"""How many views one person keeps in a workspace."""

NAME_MAX, QUERY_MAX = 80, 2_000
LISTS: dict[str, Table] = {"inbox": inbox.INBOX, "calls": listing.CALLS}
"""The lists that have views, by the name of their address."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A view as a person sees it."""

    row: SavedView
    is_own: bool
    may_delete: bool

    @property
    def address(self) -> str:
        return f"{reverse(self.row.page)}?{self.row.query}"


def of(person: Person, page: str = "") -> list[Shown]:
    """The views that a person may open, one's own first, by name; of one list or of all."""
    rows = _readable(person).order_by("name", "id")
    found = [_shown(person, each) for each in (rows.filter(page=page) if page else rows)]
    return sorted(found, key=lambda each: not each.is_own)


def _readable(person: Person) -> Any:
    rows = SavedView.objects.filter(workspace=person.workspace_id)
    return rows.filter(Q(person=person.id) | Q(is_shared=True))


def _shown(person: Person, row: SavedView) -> Shown:
    own = row.person_id == person.id
    return Shown(row, own, own or person.may(Right.ADMINISTER))


@repeatable
def save(*, person: Person, page: str, address: Any, name: str, shared: bool) -> SavedView:
    """Keep an address of a list under a name. Raises Invalid."""
    if page not in LISTS:
        raise Invalid(detail=f"Views are of {' or '.join(LISTS)}.")
    own = SavedView.objects.filter(workspace=person.workspace_id, person=person.id)
    if own.count() >= EACH_MAX:
        raise Invalid(detail=f"You have {EACH_MAX} views already; delete one first.")
    query = filters.read(LISTS[page], address).query
    if len(query) > QUERY_MAX:
        raise Invalid(detail="This address is too long to be kept; use fewer filters.")
    return SavedView.objects.create(
        workspace_id=person.workspace_id, person_id=person.id, person_name=person.name, page=page,
        query=query, name=_named(own, page, name), is_shared=shared,
    )  # fmt: skip


@repeatable
def change(*, person: Person, view_id: int, name: str, shared: bool) -> SavedView:
    """Rename a view, share it or keep it to oneself. Raises NotFound, Invalid."""
    row = _own(person, view_id)
    others = SavedView.objects.filter(workspace=person.workspace_id, person=person.id)
    row.name = _named(others.exclude(id=row.id), row.page, name)
    row.is_shared = shared
    row.save(update_fields=["name", "is_shared"])
    return row


@repeatable
def delete(*, person: Person, view_id: int) -> None:
    """Delete a view: one's own, or as an admin one that is shared. Raises NotFound."""
    row = _readable(person).filter(id=view_id).first()
    if row is None or not _shown(person, row).may_delete:
        raise NotFound(noun="saved view")
    row.delete()


def _own(person: Person, view_id: int) -> SavedView:
    rows = SavedView.objects.filter(workspace=person.workspace_id, person=person.id)
    found: SavedView | None = rows.select_for_update().filter(id=view_id).first()
    if found is None:
        raise NotFound(noun="saved view")
    return found


def _named(others: Any, page: str, name: str) -> str:
    wanted = name.strip()
    if not wanted or len(wanted) > NAME_MAX or "\x00" in wanted:
        raise Invalid(detail=f"A view has a name of 1 to {NAME_MAX} characters.")
    if others.filter(page=page, name=wanted).exists():
        raise Invalid(detail="You have a view of this name already: choose another one.")
    return wanted
