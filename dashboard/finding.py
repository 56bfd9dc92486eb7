"""Finding a noun by whatever name somebody has of it: `/go/…`, the command box of every page.

Looked for within the person's workspace only. What has no index of its own is looked for among
the newest WINDOW rows, never in all there ever were.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Replace
from django.urls import reverse

from dashboard import addresses, saved_views
from dashboard.context import RAIL
from ledger import ids, secrets, traces
from ledger.api.pages import WINDOW
from ledger.errors import NotFound
from ledger.models import Agent, Evidence, Handle, Session, Tool, ToolCall
from ledger.permissions import Person
from ledger.vocabulary import spoken
from recovery.models import Incident

TAIL = re.compile(r"[0-9a-f]{6,32}\Z")
BEGINS_WITH = 3
"""How many letters of a page's or a view's name are enough."""
PAGES = (
    *RAIL, ("deadlines", "Deadlines"), ("readiness", "Readiness"), ("saved_views", "Saved views"),
)  # fmt: skip
ASKED_MAX, SHOWN_MAX = 300, 20
TRACE_DIGITS = 32
LOOKED_IN = (
    "ids of calls, sessions and incidents", "the last six or more digits of an id",
    "ids that a provider gave to a tool call", "idempotency keys", "handles", "ids of traces",
    "whole ids of evidence", "keys and names of sessions", "names of tools",
    "names of pages and of saved views",
)  # fmt: skip


class Match(NamedTuple):
    """One thing that goes by the name, and its page."""

    noun: str
    shown: str
    address: str
    by: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What was asked, and what goes by that name."""

    asked: str
    matches: list[Match] = field(default_factory=list)
    looked_in: tuple[str, ...] = LOOKED_IN

    @property
    def address(self) -> str:
        """Where to go on to: the only match, if it has a page."""
        return self.matches[0].address if len(self.matches) == 1 else ""


def of(person: Person, asked: str) -> Found:
    """Everything of the workspace that goes by this name, calls first."""
    text = asked[:ASKED_MAX]
    if not text or "\x00" in text:
        return Found(text)
    seen: dict[tuple[str, str], Match] = {}
    for match in (*_places(person, text), *_calls(person, text), *_others(person, text)):
        seen.setdefault((match.noun, match.shown), match)
    return Found(text, list(seen.values())[:SHOWN_MAX])


def places(person: Person) -> list[str]:
    """What the box names: the pages, and the saved views that this person may open."""
    return [*(word for _, word in PAGES), *(each.row.name for each in saved_views.of(person))]


def _places(person: Person, text: str) -> Iterable[Match]:
    """Pages and saved views of this very name, whatever its case; or else that begin with it."""
    named = [Match("page", word, reverse(name), "name") for name, word in PAGES]
    views = [
        Match("saved view", each.row.name, each.address, "name", each.row.page)
        for each in saved_views.of(person)
    ]
    wanted = text.casefold()
    exact = [each for each in (*named, *views) if each.shown.casefold() == wanted]
    if len(wanted) < BEGINS_WITH:
        return exact
    return exact or [each for each in (*named, *views) if each.shown.casefold().startswith(wanted)]


def _calls(person: Person, text: str) -> Iterable[Match]:
    own = ToolCall.objects.filter(workspace=person.workspace_id)
    agents = Agent.objects.filter(workspace=person.workspace_id).values("id")
    recent = own.filter(id__in=own.order_by("-id").values("id")[:WINDOW])
    handles = Handle.objects.filter(
        workspace=person.workspace_id, value_hmac=secrets.keyed_hash(text)
    )
    looks: list[tuple[str, QuerySet[ToolCall]]] = [
        ("idempotency key", own.filter(agent__in=agents, idempotency_key=text)),
        ("provider's id", recent.filter(tool_call_id=text)),
        ("handle", own.filter(id__in=handles.values("call"))),
        *_by_trace(recent, text),
        *_by_id("call", own, text),
    ]
    for by, rows in looks:
        for row in rows.order_by("-id")[:SHOWN_MAX]:
            shown = ids.shown("call", row.id)
            yield Match("call", shown, addresses.of("call", row.id), by, f"{row.tool}, {row.state}")


def _by_trace(recent: "QuerySet[ToolCall]", text: str) -> list[Any]:
    if len(text) != TRACE_DIGITS:
        return []
    return [("trace", recent.filter(traceparent__startswith=traces.beginning(text)))]


def _others(person: Person, text: str) -> Iterable[Match]:
    sessions = Session.objects.filter(workspace=person.workspace_id)
    incidents = Incident.objects.filter(workspace=person.workspace_id)
    named = ("key or name", sessions.filter(Q(key=text) | Q(label=text)))
    for noun, looks in (
        ("session", [named, *_by_id("session", sessions, text)]),
        ("incident", _by_id("incident", incidents, text)),
    ):
        for by, rows in looks:
            for row in rows.order_by("-id")[:SHOWN_MAX]:
                yield Match(noun, ids.shown(noun, row.id), addresses.of(noun, row.id), by)
    yield from _evidence(person, text)
    for tool in Tool.objects.filter(workspace=person.workspace_id, name=text):
        yield Match("tool", tool.name, addresses.of_tool(tool.name), "name")


def _evidence(person: Person, text: str) -> Iterable[Match]:
    """A piece of evidence by its whole id: no index would find the end of one."""
    try:
        id_ = ids.read("evidence", text.lower())
    except NotFound:
        return
    for row in Evidence.objects.filter(workspace=person.workspace_id, id=id_).defer("body"):
        yield Match("evidence", ids.shown("evidence", row.id), addresses.of("evidence", row.id),
                    "id", spoken(row.kind))  # fmt: skip


def _by_id(noun: str, own: "QuerySet[Any]", text: str) -> list[Any]:
    """By the whole id, with or without its kind, or by its last digits."""
    bare = text.lower().removeprefix(f"{ids.KINDS[noun]}_").replace("-", "")
    if not TAIL.match(bare):
        return []
    if len(bare) == 32:
        return [("id", own.filter(id=UUID(bare)))]
    digits = Replace(Cast("id", TextField()), Value("-"), Value(""), output_field=TextField())
    recent = own.filter(id__in=own.order_by("-id").values("id")[:WINDOW])
    return [("end of its id", recent.annotate(digits=digits).filter(digits__endswith=bare))]
