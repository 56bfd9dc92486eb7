"""What is noticed: each statement finds what stands now and was not noticed yet.

Nothing here follows a cursor. A statement looks at what is open, or was ended within the last
day, and leaves out whose key is written already; so a transaction that commits late, a notifier
that was away and two notifiers at once lose nothing and write nothing twice. A day bounds only
what is never open: spent budgets and finished bulk runs.

Every statement gives the columns of `COLUMNS`. Facts are ids, states, effects and counts.
"""

from dataclasses import dataclass

from django.db import connection, transaction

from ledger.holds import NAME as HOLD
from ledger.vocabulary import ASKS_PERSON, BudgetScope, IncidentKind, IncidentState
from notifications.vocabulary import Event
from recovery.health import SILENT_S

COLUMNS = "workspace_id, event, key, thread, subject, tool, recovery_class, facts, since, is_open"
LIMIT = 500
"""Rows of one statement and pass."""

_OF_CALL = (
    "jsonb_build_object('call', 'call_' || replace(c.id::text, '-', ''), 'state', c.state, "
    "'effect', c.effect, 'cause', c.cause)"
)
_OF_INCIDENT = (
    "jsonb_strip_nulls(jsonb_build_object('incident', 'inc_' || replace(i.id::text, '-', ''), "
    "'kind', i.kind, 'level', i.escalation_level, 'review_at', i.review_at, "
    "'session', 'ses_' || replace(coalesce(i.session_id, c.session_id)::text, '-', ''))) "
    f"|| CASE WHEN c.id IS NULL THEN '{{}}' ELSE {_OF_CALL} END"
)


def _of_incidents(event: str, key: str, *, since: str, where: str) -> str:
    """Alarms on open incidents whose turn it is a person's."""
    return (
        f"SELECT i.workspace_id, {event}, {key}, 'incident:' || i.id, i.id::text, "  # noqa: S608 constants of ours
        f"coalesce(c.tool, ''), coalesce(c.recovery_class, ''), {_OF_INCIDENT}, {since}, true "
        "FROM recovery_incident i LEFT JOIN ledger_toolcall c ON c.id = i.call_id "
        f"WHERE i.closed_at IS NULL AND (i.state = '{IncidentState.EXHAUSTED}' "
        f"OR i.kind <> '{IncidentKind.RECOVERY}') AND {where}"
    )


_OPENED_AS = (
    f"CASE i.kind WHEN '{IncidentKind.STALE_BINDING}' THEN '{Event.SESSION_DRIFTED}' "
    f"WHEN '{IncidentKind.CONTRADICTION}' THEN '{Event.RESULT_LATE}' "
    f"WHEN '{IncidentKind.REPEATED_SEND}' THEN '{Event.RESULT_LATE}' "
    f"ELSE '{Event.INCIDENT_OPENED}' END"
)
# A recovery incident that was handed back to the machine comes to a person again by a later step.
_ROUND = f"CASE i.kind WHEN '{IncidentKind.RECOVERY}' THEN i.steps_taken ELSE 0 END"
_REASONS = ", ".join(f"'{each}'" for each in sorted(ASKS_PERSON))


def _of_interrupts(event: Event, *, where: str) -> str:
    """Alarms on open interrupts that a person answers. Served by `interrupt_waits`."""
    return (
        f"SELECT n.workspace_id, '{event}', '{event}:' || n.id, 'interrupt:' || n.id, n.id, "  # noqa: S608 constants of ours
        f"c.tool, c.recovery_class, {_OF_CALL} || jsonb_build_object('reason', n.reason, "
        "'expires_at', n.expires_at), n.asked_at, true "
        "FROM ledger_interrupt n JOIN ledger_toolcall c ON c.id = n.call_id "
        f"WHERE n.ended_at IS NULL AND (n.name <> '{HOLD}' OR n.reason IN ({_REASONS})) AND {where}"
    )


SOURCES: dict[str, str] = {
    "incidents": _of_incidents(
        _OPENED_AS, f"'opened:' || i.id || ':' || {_ROUND}", since="i.opened_at", where="true"
    ),
    # The second reminder sets both dates alike (`recovery/ageing.py`).
    "reviews near": _of_incidents(
        f"'{Event.REVIEW_NEAR}'",
        "'near:' || i.id || ':' || i.escalation_level",
        since="i.opened_at",
        where="i.remind_at = i.review_at",
    ),
    "reviews past": _of_incidents(
        f"'{Event.REVIEW_PAST}'",
        "'past:' || i.id || ':' || i.escalation_level",
        since="i.opened_at",
        where="i.escalation_level > 0",
    ),
    # Served by `incident_pending`.
    "requests": (
        f"SELECT i.workspace_id, '{Event.APPROVAL_WANTED}', 'approval:' || r.id, "  # noqa: S608 constants of ours
        "'incident:' || i.id, i.id::text, c.tool, c.recovery_class, "
        f"{_OF_INCIDENT} || jsonb_build_object('answer', r.answer, 'until', i.pending_until), "
        "r.at, true "
        "FROM recovery_incident i JOIN recovery_resolution r ON r.id = i.pending_id "
        "JOIN ledger_toolcall c ON c.id = r.call_id "
        "WHERE i.pending_until IS NOT NULL AND r.needs_second_person AND NOT EXISTS "
        "(SELECT FROM recovery_resolutionevent e WHERE e.resolution_id = r.id "
        "AND e.kind = 'approved')"
    ),
    "disputes": (
        f"SELECT i.workspace_id, '{Event.INCIDENT_DISPUTED}', 'dispute:' || d.id, "  # noqa: S608 constants of ours
        f"'incident:' || i.id, i.id::text, c.tool, c.recovery_class, {_OF_INCIDENT} "
        "|| jsonb_build_object('answer', d.answer), d.at, true "
        "FROM recovery_incident i JOIN recovery_dispute d ON d.incident_id = i.id "
        "JOIN ledger_toolcall c ON c.id = d.call_id "
        "WHERE i.closed_at IS NULL AND d.decision_id IS NULL"
    ),
    "late results": (
        f"SELECT i.workspace_id, '{Event.RESULT_LATE}', 'late:' || v.id, 'incident:' || i.id, "  # noqa: S608 constants of ours
        f"i.id::text, c.tool, c.recovery_class, {_OF_INCIDENT}, v.at, true "
        "FROM recovery_incident i JOIN ledger_toolcall c ON c.id = i.call_id "
        "JOIN ledger_evidence v ON v.call_id = i.call_id AND v.kind = 'late_result' "
        f"WHERE i.closed_at IS NULL AND i.state = '{IncidentState.EXHAUSTED}' "
        "AND v.at > i.opened_at"
    ),
    "interrupts": _of_interrupts(Event.INTERRUPT_RAISED, where="true"),
    "interrupts expiring": _of_interrupts(
        Event.INTERRUPT_EXPIRING,
        where="n.expires_at - clock_timestamp() <= (n.expires_at - n.asked_at) / 10",
    ),
    "budgets": (
        "SELECT DISTINCT ON (f.workspace_id, k.key) f.workspace_id, "  # noqa: S608 constants of ours
        f"'{Event.BUDGET_SPENT}', k.key, k.key, f.tool, f.tool, c.recovery_class, "
        "jsonb_build_object('scope', f.scope, 'call', 'call_' || replace(c.id::text, '-', '')), "
        "f.at, false "
        "FROM recovery_refusal f JOIN ledger_toolcall c ON c.id = f.call_id, "
        f"LATERAL (SELECT 'budget:' || f.scope || ':' || CASE f.scope "
        f"WHEN '{BudgetScope.TURN}' THEN c.turn_id::text "
        f"WHEN '{BudgetScope.SESSION}' THEN c.session_id::text "
        "ELSE f.tool || ':' || (f.at AT TIME ZONE 'UTC')::date END AS key) k "
        f"WHERE f.scope <> '{BudgetScope.CALL}' "
        "AND f.at > clock_timestamp() - interval '1 day' AND k.key IS NOT NULL "
        "ORDER BY f.workspace_id, k.key, f.at"
    ),
    "bulk runs": (
        f"SELECT b.workspace_id, '{Event.BULK_RUN_FINISHED}', 'bulk:' || b.id, 'bulk:' || b.id, "  # noqa: S608 constants of ours
        "b.id::text, '', '', jsonb_build_object('bulk_run', "
        "'bulk_' || replace(b.id::text, '-', ''), 'answer', b.answer, "
        "'stopped', b.stopped_at IS NOT NULL) || (SELECT jsonb_build_object('rows', count(*), "
        "'done', count(*) FILTER (WHERE w.outcome = 'done'), "
        "'not_done', count(*) FILTER (WHERE w.outcome NOT IN ('', 'done'))) "
        "FROM recovery_bulkrow w WHERE w.run_id = b.id), b.finished_at, false "
        "FROM recovery_bulkrun b WHERE b.finished_at > clock_timestamp() - interval '1 day'"
    ),
    "channels": (
        f"SELECT h.workspace_id, '{Event.CHANNEL_DISABLED}', "  # noqa: S608 constants of ours
        "'disabled:' || h.id || ':' || extract(epoch FROM h.disabled_at), 'channel:' || h.id, "
        "h.id::text, '', '', jsonb_build_object('channel', h.name), h.disabled_at, false "
        "FROM notifications_channel h WHERE h.disabled_at IS NOT NULL"
    ),
    "sweeps": (
        f"SELECT w.id, '{Event.SWEEP_SILENT}', 'silent:' || extract(epoch FROM s.last), "  # noqa: S608 constants of ours
        "'sweep:' || extract(epoch FROM s.last), '', '', '', "
        "jsonb_build_object('last_sweep_at', s.last), s.last, true "
        "FROM ledger_workspace w, (SELECT max(swept_at) AS last FROM recovery_sweep) s "
        f"WHERE s.last < clock_timestamp() - {SILENT_S} * interval '1 second'"
    ),
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How the end of an alarm is found: by its thread's beginning, and what ended it."""

    event: Event
    thread: str
    ended: str


ENDINGS = (
    Ending(
        Event.INCIDENT_RESOLVED,
        "incident:%%",
        "SELECT i.closed_at AS at, jsonb_build_object('ended_as', i.state) AS facts "
        "FROM recovery_incident i WHERE i.id = o.subject::uuid AND i.closed_at IS NOT NULL",
    ),
    Ending(
        Event.INTERRUPT_ENDED,
        "interrupt:%%",
        "SELECT n.ended_at AS at, jsonb_build_object('ended_as', n.ended_as) AS facts "
        "FROM ledger_interrupt n WHERE n.id = o.subject AND n.ended_at IS NOT NULL",
    ),
    Ending(
        Event.SWEEP_BACK,
        "sweep:%%",
        "SELECT max(s.swept_at) AS at, "  # noqa: S608 constants of ours
        "jsonb_build_object('last_sweep_at', max(s.swept_at)) "
        "AS facts FROM recovery_sweep s "
        f"HAVING max(s.swept_at) >= clock_timestamp() - {SILENT_S} * interval '1 second'",
    ),
)


def notice(limit: int = LIMIT) -> int:
    """Write down what is new, and which alarms are over; return how many were written."""
    return sum(_new(statement, limit) for statement in SOURCES.values()) + sum(map(_over, ENDINGS))


def _new(statement: str, limit: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO notifications_occurrence ({COLUMNS}, at) "  # noqa: S608 constants of ours
            f"SELECT n.*, clock_timestamp() FROM ({statement}) n ({COLUMNS}) WHERE NOT EXISTS "
            "(SELECT FROM notifications_occurrence o WHERE o.workspace_id = n.workspace_id "
            "AND o.key = n.key) LIMIT %s ON CONFLICT (workspace_id, key) DO NOTHING",
            [limit],
        )
        return int(cursor.rowcount)


@transaction.atomic
def _over(ending: Ending) -> int:
    """The all-clear of a thread, keyed by its last alarm: one that came back ends again."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH open AS (SELECT o.*, e.at AS over_at, e.facts AS over_facts "  # noqa: S608 constants of ours
            f"FROM notifications_occurrence o, LATERAL ({ending.ended}) e "
            f"WHERE o.is_open AND o.thread LIKE '{ending.thread}' FOR UPDATE OF o SKIP LOCKED), "
            "closed AS (UPDATE notifications_occurrence o SET is_open = false FROM open "
            "WHERE o.id = open.id) "
            f"INSERT INTO notifications_occurrence ({COLUMNS}, at) "
            "SELECT DISTINCT ON (workspace_id, thread) workspace_id, %s::text, 'over:' || id, "
            "thread, subject, tool, recovery_class, facts || over_facts, over_at, false, "
            "clock_timestamp() FROM open ORDER BY workspace_id, thread, id DESC "
            "ON CONFLICT (workspace_id, key) DO NOTHING",
            [str(ending.event)],
        )
        return int(cursor.rowcount)
