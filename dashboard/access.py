"""Who may see what: access lives in the look-up, so that nothing foreign is ever fetched."""

from typing import Any

from django.db.models import QuerySet

from ledger.models import ToolCall, Workspace
from ledger.models.calls import ToolCallQuerySet


def workspaces_of(person: Any) -> "QuerySet[Workspace]":
    """The workspaces that this person is a member of."""
    return Workspace.objects.filter(memberships__person=person).distinct()


def calls_of(person: Any) -> ToolCallQuerySet:
    """The calls of the workspaces that this person is a member of."""
    calls: ToolCallQuerySet = ToolCall.objects.filter(workspace__in=workspaces_of(person))
    return calls
