"""The other end of `desk_line`: a process of the installation, with the verbs of an admin."""

import json
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from ledger import registry, workers  # noqa: E402
from ledger.models import Tool, Worker, Workspace  # noqa: E402
from ledger.registry import Author  # noqa: E402

AUTHOR = Author(name="acceptance", grounds="Short enough to wait for.")


def policies(workspace: str, timeouts: dict[str, float], **knobs: Any) -> int:
    """Overlay every tool's policy of a workspace; return how many there are."""
    owner = Workspace.objects.get(slug=workspace)
    tools = Tool.objects.filter(workspace=owner)
    for tool in tools:
        document = tool.policies.get(number=tool.policy_version).document
        registry.put_policy(
            workspace_id=owner.id,
            tool_name=tool.name,
            document={**document, **knobs, "timeouts": {**document["timeouts"], **timeouts}},
            by=AUTHOR,
        )
    return len(tools)


def verify() -> list[str]:
    """Every violation of an invariant, as a sentence."""
    try:
        from ledger import verification
    except ImportError:
        return []
    return [f"{each.number}: {each.sentence} {each.row}" for each in verification.verify()]


def living_queues() -> list[str]:
    """The queues that a worker whose lock is held, and who was seen just now, serves."""
    recent = timezone.now() - timedelta(minutes=5)
    rows = Worker.objects.filter(stopped_at__isnull=True, seen_at__gt=recent)
    living = rows.exclude(id__in=workers.dead())
    return sorted({queue for row in living for queue in row.queues})


VERBS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (policies, verify, living_queues)
}


def main() -> None:
    for line in sys.stdin:
        said = json.loads(line)
        try:
            connection.close()  # the server may have been restarted since the last question
            answer = {"answer": VERBS[said.pop("verb")](**said)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


main()
