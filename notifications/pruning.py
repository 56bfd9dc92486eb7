"""Forgetting: what was told more than thirty days ago, with its log. The ledger keeps the facts."""

from django.db import connection, transaction

KEPT_DAYS = 30
LIMIT = 500

OLD = f"clock_timestamp() - interval '{KEPT_DAYS} days'"

# What stands open keeps its occurrences: without them it would be noticed anew.
OVER = (
    "(o.thread NOT LIKE 'incident:%%' OR NOT EXISTS (SELECT FROM recovery_incident i "
    "WHERE o.subject <> '' AND i.id = o.subject::uuid AND i.closed_at IS NULL)) "
    "AND NOT o.is_open AND o.thread NOT LIKE 'channel:%%'"
)


@transaction.atomic
def prune(limit: int = LIMIT) -> int:
    """Delete some of what is old; return how many occurrences."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT o.id FROM notifications_occurrence o WHERE o.routed_at IS NOT NULL "  # noqa: S608 constants of ours
            f"AND o.at < {OLD} AND {OVER} AND NOT EXISTS (SELECT FROM notifications_line l "
            "LEFT JOIN notifications_message m ON m.id = l.message_id "
            "WHERE l.occurrence_id = o.id AND (m.state = 'waiting' "
            "OR m.id IS NULL AND l.dropped = '')) ORDER BY o.at LIMIT %s",
            [limit],
        )
        ids = [row[0] for row in cursor.fetchall()]
        if ids:
            cursor.execute("DELETE FROM notifications_line WHERE occurrence_id = ANY(%s)", [ids])
            cursor.execute("DELETE FROM notifications_occurrence WHERE id = ANY(%s)", [ids])
        cursor.execute(
            "WITH old AS (SELECT m.id FROM notifications_message m WHERE m.state <> 'waiting' "  # noqa: S608 constants of ours
            f"AND m.ended_at < {OLD} AND NOT EXISTS (SELECT FROM notifications_line l "
            "WHERE l.message_id = m.id) LIMIT %s), "
            "tried AS (DELETE FROM notifications_delivery d USING old WHERE d.message_id = old.id) "
            "SELECT id FROM old",
            [limit],
        )
        messages = [row[0] for row in cursor.fetchall()]
        if messages:
            cursor.execute("DELETE FROM notifications_message WHERE id = ANY(%s)", [messages])
    return len(ids)
