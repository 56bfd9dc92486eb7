"""Incidents as the API shows them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from ledger import ids
from ledger.api.shapes import instant
from recovery import ageing, changes, companions, takings
from recovery.changes import Change
from recovery.models import Aside, Assignment, Incident, Step, Taking


def incidents(rows: Sequence[Incident]) -> list[dict[str, Any]]:
    """Several incidents, their steps and companions read once for all; calls come with the rows."""
    beside = companions.of([row.id for row in rows])
    steps: dict[UUID, list[Step]] = {}
    for each in Step.objects.filter(incident__in=rows).order_by("id"):
        steps.setdefault(each.incident_id, []).append(each)
    files = changes.of_calls([row.call_id for row in rows if row.call_id])
    return [
        incident(
            row, steps.get(row.id, []), beside.get(row.id, []), files.get(row.call_id or row.id, [])
        )
        for row in rows
    ]


def incident(
    row: Incident, steps: Sequence[Step], beside: Sequence[UUID], file: Sequence[Change]
) -> dict[str, Any]:
    """An incident: where it stands, whose turn it is and until when, its timeline.

    `file` is what lies on its call's file: it makes the decision version.
    """
    session_id = row.call.session_id if row.call else row.session_id
    waits = row.closed_at is None and row.review_at is not None
    return {
        "id": ids.shown("incident", row.id),
        "call": row.call_id and ids.shown("call", row.call_id),
        "tool": row.call and row.call.tool,
        "session": session_id and ids.shown("session", session_id),
        "kind": row.kind,
        "subject": row.subject or None,
        "state": row.state,
        "number": row.number,
        "root": ids.shown("incident", row.root_id or row.id),
        "cause": row.cause or None,
        "failure_point": row.failure_point or None,
        "runbook": row.runbook or None,
        "exhausted_because": row.reason or None,
        "facts": row.facts,
        "steps_taken": row.steps_taken,
        "steps_without_progress": row.steps_without_progress,
        "escalation_level": row.escalation_level,
        "asked": ageing.asked(row.escalation_level) if waits else None,
        "remind_at": instant(row.remind_at),
        "review_at": instant(row.review_at),
        "decision_version": changes.version_after(file),
        "opened_at": instant(row.opened_at),
        "closed_at": instant(row.closed_at),
        "companions": [ids.shown("incident", each) for each in beside],
        "steps": [step(each) for each in steps],
    }


def taking(row: Taking) -> dict[str, Any]:
    """Who works on an incident, since when, and when they were last seen at it."""
    return {
        "incident": ids.shown("incident", row.incident_id),
        "by": row.by_name,
        "taken_at": instant(row.taken_at),
        "active_at": instant(row.active_at),
        "lasts_s": takings.LASTS_S,
    }


def aside(row: Aside) -> dict[str, Any]:
    """An incident that is set aside: until when, by whom, since when."""
    return {
        "incident": ids.shown("incident", row.incident_id),
        "until": instant(row.until),
        "by": row.by_name,
        "at": instant(row.at),
    }


def assignment(row: Assignment) -> dict[str, Any]:
    """Whose work an incident is, and who said so."""
    return {
        "incident": ids.shown("incident", row.incident_id),
        "to": row.to_name,
        "by": row.by_name,
        "at": instant(row.at),
    }


def step(row: Step) -> dict[str, Any]:
    """One line of a timeline."""
    return {
        "at": instant(row.at),
        "rung": row.rung,
        "taken": row.taken,
        "rule": row.rule or None,
        "policy_version": row.policy_version,
        "timer": row.timer or None,
        "facts": row.facts,
        "grounds": row.grounds,
    }
