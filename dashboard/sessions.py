"""Sessions of a workspace as a list: what is open, unresolved, undelivered or drifting in each.

The rows of a page and their figures are two queries, however many there are. Settled calls are
looked at only among the latest of each session, so that a long one costs no more than a short one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.urls import reverse

from ledger import ids
from ledger.api.pages import page
from ledger.errors import NotFound
from ledger.filters import narrowed
from ledger.models import Agent, Session
from ledger.permissions import Person
from ledger.session_filters import SESSIONS

ROWS = 50
LATEST = 200
"""Among how many of a session's latest calls the undelivered ones are counted."""

VIEWS = {
    "open": "with an open turn",
    "unresolved": "with unresolved calls",
    "drift": "with drift",
    "stopped": "stopped",
    "imported": "imported",
}
"""The filters of the list, by the word in the address."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What stands beside a session in the list. `undelivered` is of its latest calls."""

    turn: int | None = None
    turn_interrupted: bool = False
    unresolved: int = 0
    undelivered: int = 0
    drifts: int = 0
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list."""

    session: Session
    figures: Figures


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of sessions, the filters it was asked by, and where the next one begins."""

    rows: list[Row]
    show: str
    agent: str
    q: str
    next_cursor: str | None
    any_session: bool

    @property
    def title(self) -> str:
        """What the list is of, in words; empty for all."""
        return VIEWS.get(self.show, "")

    @property
    def is_filtered(self) -> bool:
        return bool(self.show or self.agent or self.q)


def get(person: Person, session_id: str) -> Session:
    """A session of the person's workspace. Raises NotFound, for foreign and absent ones alike."""
    found = (
        Session.objects.select_related("agent")
        .filter(workspace=person.workspace_id, id=ids.read("session", session_id))
        .first()
    )
    if found is None:
        raise NotFound(noun="session")
    return found


def listed(person: Person, asked: Mapping[str, Any]) -> Listed:
    """One page, newest first. Raises Invalid for a cursor of another list."""
    show = asked.get("show", "") if asked.get("show") in VIEWS else ""
    agent, q = str(asked.get("agent", ""))[:200], str(asked.get("q", ""))[:200]
    own = Session.objects.filter(workspace=person.workspace_id).select_related("agent")
    any_session = own.exists()
    given = {"show": show, "agent": agent, "q": q}
    rows = narrowed(own, {name: text for name, text in given.items() if text}, SESSIONS)
    found, cursor = page(rows, filters=given, limit=ROWS, cursor=asked.get("cursor", ""))
    figures = figures_of([each.id for each in found])
    listed_rows = [Row(each, figures.get(each.id, Figures())) for each in found]
    return Listed(listed_rows, show, agent, q, cursor, any_session)


FIGURES = """
SELECT s.id, t.number, t.interrupted_at IS NOT NULL, own.n + taken.n, shown.n, drift.n,
       greatest(s.created_at, t.opened_at, last_turn.opened_at, last_turn.closed_at, said.at,
                call.at)
  FROM ledger_session s
  LEFT JOIN ledger_turn t ON t.session_id = s.id AND t.closed_at IS NULL
  LEFT JOIN LATERAL (SELECT id, opened_at, closed_at FROM ledger_turn WHERE session_id = s.id
                      ORDER BY number DESC LIMIT 1) last_turn ON true
  LEFT JOIN LATERAL (SELECT at FROM ledger_message WHERE turn_id = last_turn.id
                      ORDER BY position DESC LIMIT 1) said ON true
  LEFT JOIN LATERAL (SELECT greatest(recorded_at, settled_at) AS at FROM ledger_toolcall
                      WHERE session_id = s.id ORDER BY id DESC LIMIT 1) call ON true
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM ledger_toolcall WHERE session_id = s.id
                      AND settled_at IS NULL AND handed_off_id IS NULL) own
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM ledger_handoff h
                       JOIN ledger_toolcall c ON c.handed_off_id = h.id AND c.settled_at IS NULL
                      WHERE h.to_session_id = s.id AND h.ended_as = 'accepted') taken
 CROSS JOIN LATERAL (SELECT count(*) AS n FROM ledger_drift d
                      WHERE d.session_id = s.id AND d.epoch = s.epoch AND d.blocked) drift
 CROSS JOIN LATERAL (
   SELECT count(*) AS n FROM (SELECT c.id, c.state, c.settled_at, c.agent_id, c.handed_off_id
            FROM ledger_toolcall c WHERE c.session_id = s.id ORDER BY c.id DESC LIMIT %s) c
    WHERE c.settled_at IS NOT NULL AND c.handed_off_id IS NULL
      AND NOT EXISTS (SELECT FROM ledger_delivery d
                       WHERE d.call_id = c.id AND d.acknowledged_at IS NOT NULL
                         AND d.state = c.state)
      AND NOT EXISTS (SELECT FROM ledger_fetch f WHERE f.call_id = c.id AND f.state = c.state
                       AND f.reader = replace(c.agent_id::text, '-', ''))) shown
 WHERE s.id = ANY(%s)
"""
"""One row a session; the calls are reached through `call_of_session`, newest first.

A notice that was read before a call settled shows another state: its outcome is undelivered. A
settled state is final, so whoever was shown it has read the outcome, by whatever words.
"""


def figures_of(session_ids: list[UUID]) -> dict[UUID, Figures]:
    """The figures of these sessions, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(FIGURES, [LATEST, session_ids])
        return {id_: Figures(*rest) for id_, *rest in cursor.fetchall()}


def agents_of(person: Person) -> list[str]:
    """The agents of the workspace, for the filter; a hundred at most."""
    rows = Agent.objects.filter(workspace=person.workspace_id).order_by("name")
    return list(rows.values_list("name", flat=True)[:100])


def address_of(session: Session) -> str:
    """The page of a session."""
    return reverse("sessions-detail", args=[ids.shown("session", session.id)])
