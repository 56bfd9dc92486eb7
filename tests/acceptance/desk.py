"""The other end of `desk_line`: a process of the installation, with the verbs of an admin."""

import json
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402

from ledger import registry, verification  # noqa: E402
from ledger.models import Tool, Workspace  # noqa: E402
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


def verify(since: str) -> list[str]:
    """Every violation by calls that are open or had an event since then, as a sentence."""
    return [str(each) for each in verification.verify(since=datetime.fromisoformat(since))]


VERBS: dict[str, Callable[..., Any]] = {"policies": policies, "verify": verify}


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
