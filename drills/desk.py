"""The other end of `desk_line`: a process of the installation, with the verbs of an admin.

`python -m drills.desk` reads one JSON object a line from standard input and answers each with
one. It reads the ledger and sets policies; it never moves a call.
"""

import json
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402

from ledger import ids, registry, verification  # noqa: E402
from ledger.conditions import Seen  # noqa: E402
from ledger.models import (  # noqa: E402
    Attempt,
    Compaction,
    Event,
    HandOff,
    Result,
    Tool,
    ToolCall,
    Workspace,
)
from ledger.registry import Author  # noqa: E402
from ledger.vocabulary import HandOffEnd  # noqa: E402

AUTHOR = Author(name="drill", grounds="Short enough to wait for.")


def policies(
    workspace: str, timeouts: dict[str, float], tools: list[str] | None = None, **knobs: Any
) -> int:
    """Overlay the policies of a workspace's tools, all or those named; return how many."""
    owner = Workspace.objects.get(slug=workspace)
    found = Tool.objects.filter(workspace=owner)
    if tools is not None:
        found = found.filter(name__in=tools)
    for tool in found:
        document = tool.policies.get(number=tool.policy_version).document
        registry.put_policy(
            workspace_id=owner.id,
            tool_name=tool.name,
            document={**document, **knobs, "timeouts": {**document["timeouts"], **timeouts}},
            by=AUTHOR,
            seen=Seen(version=tool.policy_version),
        )
    return len(found)


def verify(since: str | None = None, calls: list[str] | None = None) -> list[str]:
    """Every violation, as a sentence, by calls that are open or had an event since then.

    `calls` narrows it to these, by their 32 hex digits, and to the schema.
    """
    found = verification.verify(since=datetime.fromisoformat(since) if since else None)
    return [
        str(each)
        for each in found
        if calls is None or each.call_id is None or each.call_id.hex in calls
    ]


def calls(workspace: str) -> list[dict[str, Any]]:
    """Every call of a workspace with its attempts and events, as the checker reads them."""
    rows = ToolCall.objects.filter(workspace__slug=workspace).order_by("id")
    attempts, events, results = _attempts(workspace), _events(workspace), _results(workspace)
    return [
        {
            "id": row.id.hex,
            "key": row.idempotency_key,
            "tool": row.tool,
            "recovery_class": str(row.recovery_class),
            "arguments": json.loads(row.arguments),
            "state": str(row.state),
            "effect": str(row.effect),
            "settled": row.is_settled,
            "settled_at": row.settled_at.timestamp() if row.settled_at else None,
            "session": row.session_id.hex if row.session_id else None,
            "cause": str(row.cause or ""),
            "reason": row.reason or "",
            "attempts": attempts[row.id],
            "events": events[row.id],
            "result": results.get(row.id),
        }
        for row in rows
    ]


def unsettled(workspace: str) -> dict[str, int]:
    """How many calls of a workspace are open, by state."""
    rows = ToolCall.objects.filter(workspace__slug=workspace, settled_at__isnull=True)
    return dict(Counter(str(state) for state in rows.values_list("state", flat=True)))


def sessions(workspace: str) -> dict[str, list[dict[str, Any]]]:
    """Every compaction and accepted hand-off of a workspace, as the session checker reads them."""
    compacted = Compaction.objects.filter(workspace__slug=workspace).order_by("id")
    taken = HandOff.objects.filter(workspace__slug=workspace, ended_as=HandOffEnd.ACCEPTED)
    return {
        "compacted": [
            {
                "id": row.id.hex,
                "session": row.session_id.hex,
                "at": row.at.timestamp(),
                "carried": [ids.read("call", line["call"]).hex for line in row.carry_over],
            }
            for row in compacted
        ],
        "handed_over": [
            {
                "id": row.id.hex,
                "sender": row.from_session_id.hex,
                "receiver": row.to_session_id.hex if row.to_session_id else "",
                "at": row.ended_at.timestamp() if row.ended_at else 0.0,
                "calls": [each.hex for each in row.calls],
            }
            for row in taken.order_by("ended_at")
        ],
    }


def _attempts(workspace: str) -> dict[Any, list[dict[str, Any]]]:
    found: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in Attempt.objects.filter(workspace__slug=workspace).order_by("call_id", "fence"):
        found[row.call_id].append(
            {
                "fence": row.fence,
                "kind": str(row.kind),
                "crossed": row.crossed_at is not None,
                "outcome": row.outcome,
                "cause": str(row.cause or ""),
                "worker": row.worker_id.hex if row.worker_id else "",
            }
        )
    return found


def _events(workspace: str) -> dict[Any, list[tuple[str, float, int]]]:
    found: dict[Any, list[tuple[str, float, int]]] = defaultdict(list)
    rows = Event.objects.filter(call__workspace__slug=workspace).order_by("call_id", "seq")
    for call_id, kind, at, fence in rows.values_list("call_id", "kind", "at", "fence"):
        found[call_id].append((kind, at.timestamp(), fence or 0))
    return found


def _results(workspace: str) -> dict[Any, str]:
    rows = Result.objects.filter(workspace__slug=workspace).values_list("call_id", "body")
    return {call_id: bytes(body).decode("utf-8", "replace") for call_id, body in rows}


VERBS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (policies, verify, calls, sessions, unsettled)
}


def main() -> None:
    """Answer until the line is closed."""
    for line in sys.stdin:
        said = json.loads(line)
        try:
            connection.close()  # the server may have been restarted since the last question
            answer = {"answer": VERBS[said.pop("verb")](**said)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
