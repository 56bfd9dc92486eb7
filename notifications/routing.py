"""From what was noticed to the outbox: one line for each channel that asked for it."""

from django.db import connection, transaction

from notifications.vocabulary import ALL_CLEAR

LIMIT = 500

ROUTE = """
INSERT INTO notifications_line (workspace_id, channel_id, occurrence_id, due_at, dropped)
SELECT o.workspace_id, h.id, o.id,
       o.at + CASE WHEN o.event = ANY(%(all_clear)s::text[]) THEN interval '0'
                   ELSE h.least_age_s * interval '1 second' END, ''
  FROM notifications_occurrence o
  JOIN notifications_channel h ON h.workspace_id = o.workspace_id AND h.is_on AND h.made_at <= o.at
 WHERE o.id = ANY(%(ids)s::bigint[])
   AND (o.event = ANY(h.events)
        AND (o.tool = '' OR h.tools = '{}' OR o.tool = ANY(h.tools))
        AND (o.recovery_class = '' OR h.classes = '{}' OR o.recovery_class = ANY(h.classes))
     OR o.event = ANY(%(all_clear)s::text[]) AND EXISTS (
          SELECT FROM notifications_occurrence a
            JOIN notifications_line l ON l.occurrence_id = a.id AND l.channel_id = h.id
           WHERE a.workspace_id = o.workspace_id AND a.thread = o.thread AND a.id < o.id
             AND l.dropped = ''))
 ORDER BY o.id
ON CONFLICT (channel_id, occurrence_id) DO NOTHING
"""


@transaction.atomic
def route(limit: int = LIMIT) -> int:
    """Put what was noticed into the outbox of every channel that asked; return how many lines.

    An all-clear goes to whoever got the alarm, whatever the filters. The oldest go first, so that
    an alarm is routed before its all-clear is looked at.
    """
    lines = 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, event FROM notifications_occurrence WHERE routed_at IS NULL ORDER BY id "
            "LIMIT %s FOR UPDATE SKIP LOCKED",
            [limit],
        )
        found = cursor.fetchall()
        words = sorted(ALL_CLEAR)
        alarms = [id_ for id_, event in found if event not in words]
        for ids in (alarms, [id_ for id_, event in found if event in words]):
            if ids:
                cursor.execute(ROUTE, {"ids": ids, "all_clear": words})
                lines += cursor.rowcount
        if found:
            cursor.execute(
                "UPDATE notifications_occurrence SET routed_at = clock_timestamp() "
                "WHERE id = ANY(%s)",
                [[id_ for id_, _ in found]],
            )
    return lines
