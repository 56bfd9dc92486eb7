"""Which pages of the demo are worth looking at: a name and an address for each."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.text import slugify

from ledger import ids
from ledger.models import Import, Session, ToolCall, Workspace
from notifications.models import Channel
from recovery.models import BulkRun, Incident, Resolution

PLAIN = {
    "overview": "/",
    "inbox": "/inbox",
    "calls": "/calls",
    "calls-none": "/calls?q=nothing-is-called-like-this",
    "sessions": "/sessions",
    "tools": "/tools",
    "tool": "/tools/shop.refund",
    "policy": "/tools/shop.refund/policy",
    "tool-breaker": "/tools/rates.latest",
    "budgets": "/budgets",
    "budgets-all": "/budgets?all=1",
    "bulk-runs": "/bulk-runs",
    "approvals": "/approvals",
    "deadlines": "/deadlines",
    "workers": "/workers",
    "drills": "/drills",
    "readiness": "/readiness",
    "audit": "/audit",
    "settings": "/settings",
    "people": "/settings/people",
    "keys": "/settings/keys",
    "notifications": "/settings/notifications",
    "import-new": "/imports/new",
    "transcript-repair": "/transcripts/repair",
    "go-nowhere": "/go?q=nothing-like-it",
}


def of(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Every page that this workspace has something to show on."""
    yield from PLAIN.items()
    yield from _calls(workspace)
    yield from _incidents(workspace)
    yield from _sessions(workspace)
    for asked in Resolution.objects.filter(workspace=workspace, needs_second_person=True)[:1]:
        yield "approval", reverse("approvals-detail", args=[ids.shown("resolution", asked.id)])
    for run in BulkRun.objects.filter(workspace=workspace)[:1]:
        yield "bulk-run", reverse("bulk_runs-detail", args=[ids.shown("bulk_run", run.id)])
    for channel in Channel.objects.filter(workspace=workspace).order_by("name"):
        yield (
            f"channel-{slugify(channel.name)}",
            reverse("settings-channel", args=[ids.shown("channel", channel.id)]),
        )
    for took in Import.objects.filter(workspace=workspace)[:1]:
        yield "import", reverse("sessions-import", args=[ids.shown("import", took.id)])


def _calls(workspace: Workspace) -> Iterator[tuple[str, str]]:
    latest = ToolCall.objects.filter(workspace=workspace).order_by("state", "-id").distinct("state")
    for call in latest:
        yield f"call-{call.state}", _call(call, "calls-detail")
    for call in ToolCall.objects.filter(workspace=workspace, fence__gt=1)[:1]:
        yield "attempt", reverse("calls-attempt", args=[ids.shown("call", call.id), 1])


def _call(call: ToolCall, name: str) -> str:
    return reverse(name, args=[ids.shown("call", call.id)])


def _incidents(workspace: Workspace) -> Iterator[tuple[str, str]]:
    found = Incident.objects.filter(workspace=workspace).order_by("kind", "state", "-opened_at")
    for row in found.distinct("kind", "state"):
        address = reverse("inbox-incident", args=[ids.shown("incident", row.id)])
        yield f"incident-{row.kind}-{row.state}", address


def _sessions(workspace: Workspace) -> Iterator[tuple[str, str]]:
    latest = Session.objects.filter(workspace=workspace).order_by("label", "-created_at")
    for row in latest.distinct("label"):
        name = "-".join(row.label.lower().replace("'", "").split())
        yield f"session-{name}", reverse("sessions-detail", args=[ids.shown("session", row.id)])
