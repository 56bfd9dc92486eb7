"""Gates: who may not begin now, because a tool is switched off or a breaker is open (R50).

One small table that every worker and every web process looks at: claims at each claim, submits
at most a second late. A gate stops new attempts only; what runs is left to end, and open calls
run out on their own deadlines. Through a breaker's gate one call passes as the trial.

Locks: gates by id, then nothing.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import connection

from ledger import clock
from ledger.models import Gate
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import GateKind, GateReason


def _before(gate: str) -> str:
    """Whether this gate stands before call `c`, as SQL."""
    return (
        f"{gate}.workspace_id = c.workspace_id AND {gate}.name = CASE {gate}.kind "  # noqa: S608 names of our own
        "WHEN 'tool' THEN c.tool ELSE (SELECT v.provider FROM ledger_toolversion v "
        "WHERE v.id = c.tool_version_id) END"
    )


# The first half is asked once a statement: without any gate no call is looked at.
PASSES = (
    "(NOT EXISTS (SELECT FROM ledger_gate) OR NOT EXISTS (SELECT FROM ledger_gate g "  # noqa: S608 a constant
    f"WHERE {_before('g')} AND g.trial_call_id IS DISTINCT FROM c.id))"
)
"""Whether call `c` may be claimed: no gate stands before it, or it is the trial of each."""

Place = tuple[UUID, str, str]


@dataclass(frozen=True, slots=True)
class Closed:
    """A gate as a submit remembers it; `trial_due_s` on this process's monotonic clock."""

    id: UUID
    why: GateReason
    trial_due_s: float


def standing(workspace_ids: Iterable[UUID]) -> Mapping[Place, list[Closed]]:
    """The gates of these workspaces, by workspace, kind and name."""
    rows = list(Gate.objects.filter(workspace__in=set(workspace_ids)))
    now, now_s = clock.now() if rows else None, time.monotonic()
    found: dict[Place, list[Closed]] = {}
    for each in rows:
        left_s = (each.trial_at - now).total_seconds() if each.trial_at and now else math.inf
        place = (each.workspace_id, str(each.kind), each.name)
        found.setdefault(place, []).append(Closed(each.id, each.why, now_s + left_s))
    return found


def before(
    gates: Mapping[Place, list[Closed]], workspace_id: UUID, tool: str, provider: str
) -> tuple[Closed, ...]:
    """The gates before one tool: its own, and those of its provider."""
    own = gates.get((workspace_id, GateKind.TOOL, tool), [])
    shared = gates.get((workspace_id, GateKind.PROVIDER, provider), []) if provider else []
    return (*own, *shared)


def is_switched_off(gates: Sequence[Closed]) -> bool:
    """Whether a person closed one of these gates."""
    return any(each.why is GateReason.SWITCHED_OFF for each in gates)


def refusal(gates: Sequence[Closed], call_id: UUID, *, reads: bool) -> str:
    """Why a new call is rejected, in one word; empty where it passes as the trial.

    Runs in the transaction that records the call. The trial is due when every gate before the
    call says so; a call that only reads goes first, so another does not pass while one waits.
    """
    if is_switched_off(gates):
        return str(GateReason.SWITCHED_OFF)
    ids = [each.id for each in gates]
    # What is not due yet need not be asked again: rejecting costs no look-up.
    is_due = all(each.trial_due_s <= time.monotonic() for each in gates)
    passes = is_due and (reads or not _a_read_waits(ids)) and admit(ids, call_id)
    return "" if passes else str(GateReason.BREAKER_OPEN)


def admit(gate_ids: Sequence[UUID], call_id: UUID) -> bool:
    """Let one call pass all of these gates as their trial; False unless each is due and free.

    A gate that was lifted meanwhile stands in nobody's way.
    """
    wanted = Gate.objects.filter(id__in=gate_ids)
    due = wanted.filter(trial_at__lte=ClockTimestamp(), trial_call__isnull=True)
    free = [each.id for each in due.order_by("id").select_for_update()]
    if len(free) < wanted.count():
        return False
    wanted.filter(id__in=free).update(trial_call=call_id, admitted_at=ClockTimestamp())
    return True


def _a_read_waits(gate_ids: Sequence[UUID]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM ledger_toolcall c JOIN ledger_gate g "  # noqa: S608 constants of this module
            f"ON {_before('g')} WHERE g.id = ANY(%s) AND c.state = 'scheduled' "
            "AND c.queue = 'reads')",
            [list(gate_ids)],
        )
        return bool(cursor.fetchone()[0])


@dataclass(frozen=True, slots=True)
class Waiting:
    """A scheduled call that may become the trial, its queue, and all gates before it."""

    call_id: UUID
    queue: str
    gate_ids: list[UUID]


def next_trial(gate_id: UUID) -> Waiting | None:
    """The waiting call that passes next: one that only reads before any other, then the oldest.

    Only one for which every gate before it is due: two gates would else wait for each other.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.id, c.queue, array_agg(o.id) FROM ledger_gate g "  # noqa: S608 constants of this module
            f"JOIN ledger_toolcall c ON {_before('g')} JOIN ledger_gate o ON {_before('o')} "
            "WHERE g.id = %s AND c.state = 'scheduled' "
            "AND c.schedule_to_start_at > clock_timestamp() GROUP BY c.id, c.queue, c.published_at "
            "HAVING bool_and(o.trial_at IS NOT NULL AND o.trial_at <= clock_timestamp() "
            "AND o.trial_call_id IS NULL) ORDER BY c.queue <> 'reads', c.published_at LIMIT 1",
            [gate_id],
        )
        row = cursor.fetchone()
    return Waiting(*row) if row else None


def close(
    *, workspace_id: UUID, kind: GateKind, name: str, why: GateReason,
    trial_in_s: float | None = None,
) -> None:  # fmt: skip
    """Put up a gate, or date its trial anew; `trial_in_s` None: until a person lifts it."""
    trial_at = None if trial_in_s is None else ClockTimestamp() + timedelta(seconds=trial_in_s)
    Gate.objects.update_or_create(
        workspace_id=workspace_id,
        kind=kind,
        name=name,
        why=why,
        defaults={"trial_at": trial_at, "trial_call": None, "admitted_at": None},
    )


def lift(*, workspace_id: UUID, kind: GateKind, name: str, why: GateReason) -> None:
    """Take a gate away; who waited behind it is rung for again by the sweep at the latest."""
    Gate.objects.filter(workspace=workspace_id, kind=kind, name=name, why=why).delete()
