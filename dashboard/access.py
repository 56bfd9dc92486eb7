"""Who may see what: access lives in the look-up, so that nothing foreign is ever fetched."""

from typing import Any

from django.db.models import QuerySet

from ledger.models import Workspace


def workspaces_of(person: Any) -> "QuerySet[Workspace]":
    """The workspaces that this person is a member of."""
    return Workspace.objects.filter(memberships__person=person).distinct()
