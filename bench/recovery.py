"""Seconds from `kill -9` of a worker to the call's running again, or to its being flagged."""

import json
import os
import signal
import time
import urllib.request
from typing import Any

from bench import cpu

LIMIT_S = 30.0


def _ask(facts: dict[str, Any], path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{facts['port']}/api/v1{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {facts['api_key']}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=40) as answer:  # noqa: S310
        value: dict[str, Any] = json.load(answer)
        return value


def _until(facts: dict[str, Any], call: str, reached: Any) -> float:
    began = time.monotonic()
    while time.monotonic() - began < LIMIT_S:
        seen = _ask(facts, f"/calls/{call}")
        if reached(seen):
            return time.monotonic() - began
        time.sleep(0.01)
    raise TimeoutError(f"{call} stands at {seen['state']} after {LIMIT_S} s.")


def _pool_child_of(root: int, attempt: dict[str, Any]) -> int:
    pid = int(attempt["worker"].rpartition("-")[2])
    if pid not in cpu.tree(root):
        raise LookupError(f"Worker {attempt['worker']} does not belong to this installation.")
    return pid


def seconds_to_running_again(facts: dict[str, Any], root: int) -> float:
    """Kill the pool child of an idempotent write in the middle of it; another must take over."""
    path = f"bench/{time.time_ns()}.txt"
    body = {
        "tool": "sandbox.write_artifact",
        "arguments": {"path": path, "text": "x", "pause_before_s": 5},
    }
    call = _ask(facts, "/calls", body)["id"]
    _until(facts, call, lambda seen: seen["boundary_crossed"])
    first = _ask(facts, f"/calls/{call}/attempts")["items"][0]
    os.kill(_pool_child_of(root, first), signal.SIGKILL)
    return _until(
        facts, call, lambda seen: seen["attempts_used"] == 2 and seen["state"] == "running"
    )


def seconds_to_flagged(facts: dict[str, Any], root: int) -> float:
    """Kill the pool child of a side effect behind its boundary: flagged, never run again."""
    body = {
        "tool": "sandbox.send_mail",
        "arguments": {"to": "a@example.org", "subject": "bench", "body": "x",
                      "pause_after_cross_s": 20},
    }  # fmt: skip
    call = _ask(facts, "/calls", body)["id"]
    _until(facts, call, lambda seen: seen["boundary_crossed"])
    first = _ask(facts, f"/calls/{call}/attempts")["items"][0]
    os.kill(_pool_child_of(root, first), signal.SIGKILL)
    return _until(facts, call, lambda seen: seen["state"] in ("interrupted", "ambiguous"))
