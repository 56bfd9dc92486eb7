"""Reads the last calls of a tool as histories that another policy can be tried on.

Bounded whatever the ledger holds: so many calls, so many days, and so many calls of all tools
looked through, by their ids, which are in the order of time; then one query for each table.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from ledger import clock, versions
from ledger.models import Attempt, Event, Evidence, Tool, ToolCall
from ledger.vocabulary import AttemptKind, CallState, Cause, Effect, Meaning, ProbeFinding
from recovery.models import Grant
from recovery.trials import Asked, History, Try

CALLS_MAX, DAYS_MAX = 500, 7
MEASURED_MIN = 20
"""Fewer attempts than this have no 99th percentile worth a word."""
LOOKED_THROUGH = 50_000
"""How many of the newest calls of all tools are looked through for those of one."""

# No index names the tool: ids are in the order of time, so the newest are read and left early.
_NEWEST = (
    "SELECT id FROM (SELECT id, tool, workspace_id FROM ledger_toolcall WHERE id >= %s "  # noqa: S608 a constant of this module
    f"ORDER BY id DESC LIMIT {LOOKED_THROUGH}) newest "
    "WHERE tool = %s AND workspace_id = %s LIMIT %s"
)

_ENDED_WELL = (
    "SELECT count(*), extract(epoch FROM percentile_disc(0.99) WITHIN GROUP "  # noqa: S608 the same
    f"(ORDER BY ended_at - claimed_at)) FROM ledger_attempt WHERE call_id IN ({_NEWEST}) "
    "AND kind = 'run' AND ended_at IS NOT NULL AND cause = '' "
    "AND outcome NOT IN ('parked', 'released')"
)


def of(tool: Tool, *, calls: int = CALLS_MAX, days: int = DAYS_MAX) -> list[History]:
    """The histories of the newest calls of a tool, the newest first, within so many days."""
    now = clock.now()
    rows = _calls(tool, now - timedelta(days=days), calls)
    ids = [row.id for row in rows]
    versions.read([(row.tool_version_id, row.policy_id) for row in rows])
    tries, published = _attempts(ids), _published(ids)
    proved, granted = _proved(ids), _granted(ids)
    return [
        _history(row, now, tries[row.id], published[row.id], row.id in proved, granted)
        for row in rows
    ]


def measured_s(tool: Tool) -> float | None:
    """The 99th percentile of the newest calls' attempts that ended well, in seconds.

    None where fewer than 20 were measured.
    """
    since = earliest_id(clock.now() - timedelta(days=DAYS_MAX))
    with connection.cursor() as cursor:
        cursor.execute(_ENDED_WELL, [since, tool.name, tool.workspace_id, CALLS_MAX])
        number, seconds = cursor.fetchone()
    return None if number < MEASURED_MIN else float(seconds)


def earliest_id(moment: datetime) -> UUID:
    """The smallest UUIDv7 of this millisecond or a later one (RFC 9562, section 5.7)."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)


def _calls(tool: Tool, since: datetime, most: int) -> list[ToolCall]:
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [earliest_id(since), tool.name, tool.workspace_id, most])
        ids = [id_ for (id_,) in cursor.fetchall()]
    rows = ToolCall.objects.filter(id__in=ids).defer("arguments", "arguments_received")
    return sorted(rows.select_related("session"), key=lambda row: row.id, reverse=True)


def _attempts(ids: Sequence[UUID]) -> Mapping[UUID, list[Attempt]]:
    found: dict[UUID, list[Attempt]] = defaultdict(list)
    for each in Attempt.objects.filter(call__in=ids).exclude(outcome="released").order_by("fence"):
        found[each.call_id].append(each)
    return found


def _published(ids: Sequence[UUID]) -> Mapping[UUID, list[datetime]]:
    """When the attempts of each call were published, in order."""
    found: dict[UUID, list[datetime]] = defaultdict(list)
    rows = Event.objects.filter(call__in=ids, kind="scheduled").order_by("call_id", "seq")
    for call_id, at in rows.values_list("call_id", "at"):
        found[call_id].append(at)
    return found


def _proved(ids: Sequence[UUID]) -> set[UUID]:
    """The calls of which a probe, a late result or a person says that the effect happened."""
    rows = Evidence.objects.filter(call__in=ids, finding="happened")
    late = Evidence.objects.filter(call__in=ids, kind="late_result", adoptable=True)
    return set((rows | late).values_list("call_id", flat=True))


def _granted(ids: Sequence[UUID]) -> Mapping[UUID, int]:
    rows = Grant.objects.filter(call__in=ids).values_list("call_id")
    return dict(rows.annotate(Sum("attempts")))


def _history(
    row: ToolCall,
    now: datetime,
    attempts: Iterable[Attempt],
    published: Sequence[datetime],
    proved: bool,
    granted: Mapping[UUID, int],
) -> History:
    version, policy = versions.read([(row.tool_version_id, row.policy_id)])[0]
    return History(
        call_id=row.id,
        policy=policy,
        begun_at=published[0] if published else row.recorded_at,
        read_at=now,
        happened=proved or row.effect is Effect.HAPPENED,
        expired_by=row.reason if row.state is CallState.EXPIRED else "",
        granted=granted.get(row.id, 0),
        has_probe=version.probes,
        cancel_requested_at=row.cancel_requested_at,
        stopped_at=row.session.stopped_at if row.session else None,
        tries=_tries(attempts, published),
    )


def _tries(attempts: Iterable[Attempt], published: Sequence[datetime]) -> tuple[Try, ...]:
    """Runs, and polls that ended the following of a handle, each with the probes after it."""
    found: list[tuple[Attempt, list[Asked]]] = []
    for each in attempts:
        if each.kind is AttemptKind.PROBE:
            if found and each.finding:
                found[-1][1].append(_asked(each))
        elif each.kind is AttemptKind.RUN or _ends_following(each):
            found.append((each, []))
    return tuple(_try(each, asked, published) for each, asked in found)


def _ends_following(attempt: Attempt) -> bool:
    known = attempt.means in (Meaning.KNOWN, Meaning.REFUSED)
    return attempt.cause == Cause.VANISHED or (known and attempt.cause != "")


def _asked(probe: Attempt) -> Asked:
    return Asked(claimed_at=probe.claimed_at, finding=ProbeFinding(probe.finding))


def _try(row: Attempt, asked: list[Asked], published: Sequence[datetime]) -> Try:
    before = [at for at in published if at <= row.claimed_at]
    values: dict[str, Any] = {
        "cause": Cause(row.cause) if row.cause else None,
        # A plain success has a meaning too, and no cause.
        "means": Meaning(row.means) if row.cause and row.ended_at else None,
        "queued_s": (row.claimed_at - before[-1]).total_seconds() if before else None,
    }
    return Try(
        claimed_at=row.claimed_at,
        ended_at=row.ended_at,
        crossed_at=row.crossed_at,
        disproved_at=row.disproved_at,
        dead_at=row.dead_at,
        parked=row.outcome == "parked",
        is_run=row.kind is AttemptKind.RUN,
        probes=tuple(asked),
        **values,
    )
