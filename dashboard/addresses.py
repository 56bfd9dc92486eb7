"""Addresses of the console's nouns, by the paths that are promised to stay: `/incidents/inc_…`."""

from typing import Any

from django.urls import Resolver404, resolve, reverse

from ledger import ids

FOLDERS = {
    "call": "calls",
    "session": "sessions",
    "incident": "incidents",
    "evidence": "evidence",
    "policy": "policies",
    "bulk_run": "bulk-runs",
    "import": "imports",
}


def of(noun: str, id_: Any) -> str:
    """The page of a noun, or nothing where there is no such page."""
    return _known(f"/{FOLDERS[noun]}/{ids.shown(noun, id_)}") if id_ is not None else ""


def of_turn(session_id: Any, number: int) -> str:
    """Where a turn stands on the page of its session."""
    return f"{of('session', session_id)}?turn={number}#turn-{number}"


def of_tool(name: str) -> str:
    """The page of a tool."""
    return reverse("tools-detail", args=[name])


def _known(path: str) -> str:
    try:
        resolve(path)
    except Resolver404:
        return ""
    return path
