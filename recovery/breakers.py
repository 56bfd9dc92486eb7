"""Circuit breakers per tool and per provider, shared by all workers (R50; semantics, section 9).

Of at least 20 attempts that ended within a minute half ended in a cause that speaks against the
outside: the breaker opens and no new attempt begins. After 30 s, doubled with each failed trial
up to ten minutes, one call passes; its end closes the breaker or opens it again.

The watchdog looks once a sweep, so an attempt that ends well costs nothing. An attempt that ended
badly is found by an index that holds no other. Locks: breaker, gates by id, then appends.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from ledger import dispatch, gates, registered
from ledger.errors import Invalid, NotFound
from ledger.models import Attempt, Gate, ToolCall
from ledger.models.attempts import BREAKS
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import BreakerState, CallState, Cause, GateKind, GateReason, spoken
from recovery.models import Breaker, BreakerChange

WINDOW_S, ATTEMPTS_MIN = 60.0, 20
OPEN_S, OPEN_MAX_S = 30.0, 600.0
LONGEST_RUN_S = 3600.0  # a run that was claimed earlier is not looked for

# Ends of a trial. What is in neither says nothing of the outside: another call passes.
REFUTES = frozenset({*map(Cause, BREAKS), Cause.CONNECT_FAILED})
SILENT = frozenset({Cause.WORKER_LOST, Cause.RESOURCE_KILLED, Cause.INTERNAL, Cause.VANISHED,
                    Cause.NOT_BEGUN_REPORTED, Cause.TOOL_UNKNOWN})  # fmt: skip


def sweep(limit: int = 50) -> int:
    """Open what fails, let trials pass, and judge those that ended; return how many changed."""
    opened = sum(_open_if_failing(each) for each in _suspects(limit))
    waiting = Breaker.objects.exclude(state=BreakerState.CLOSED).values_list("id", flat=True)
    return opened + sum(_follow(id_) for id_ in list(waiting[:limit]))


# Opening


@dataclass(frozen=True, slots=True)
class Suspect:
    """A tool or a provider of which many attempts ended badly within the window."""

    workspace_id: UUID
    kind: GateKind
    name: str
    bad: int


_WORDS = ", ".join(f"'{cause}'" for cause in BREAKS)

# The statement's instant, since no index serves a comparison with clock_timestamp(); the words
# stand in the text, since a partial index is not found through parameters.
SUSPECTS = (
    "WITH bad AS (SELECT c.workspace_id, c.tool, v.provider, a.ended_at FROM ledger_attempt a "  # noqa: S608 constants of this module
    "JOIN ledger_toolcall c ON c.id = a.call_id JOIN ledger_toolversion v ON v.id = "
    f"c.tool_version_id WHERE a.cause IN ({_WORDS}) AND a.kind = 'run' "
    f"AND a.ended_at > statement_timestamp() - interval '{WINDOW_S:g} s'), "
    "named AS (SELECT workspace_id, 'tool' AS kind, tool AS name, ended_at FROM bad UNION ALL "
    "SELECT workspace_id, 'provider', provider, ended_at FROM bad WHERE provider <> '') "
    "SELECT n.workspace_id, n.kind, n.name, count(*) FROM named n LEFT JOIN recovery_breaker b "
    "ON b.workspace_id = n.workspace_id AND b.kind = n.kind AND b.name = n.name "
    "WHERE b.id IS NULL OR b.state = 'closed' AND n.ended_at > b.since "
    f"GROUP BY 1, 2, 3 HAVING count(*) * 2 >= {ATTEMPTS_MIN} LIMIT %s"
)

# Stops as soon as there are too many attempts for half of them to be bad.
ENDED = (
    "SELECT count(*) FROM (SELECT FROM ledger_attempt a JOIN ledger_toolcall c ON c.id = a.call_id "  # noqa: S608 constants of this module
    "JOIN ledger_toolversion v ON v.id = c.tool_version_id WHERE a.kind = 'run' "
    "AND a.outcome <> 'released' AND a.ended_at > greatest(%(since)s::timestamptz, "
    f"statement_timestamp() - interval '{WINDOW_S:g} s') "
    f"AND a.claimed_at > statement_timestamp() - interval '{WINDOW_S + LONGEST_RUN_S:g} s' "
    "AND c.workspace_id = %(workspace)s AND {} = %(name)s LIMIT %(most)s) ended"
)
NAMED_BY = {GateKind.TOOL: "c.tool", GateKind.PROVIDER: "v.provider"}


def _suspects(limit: int) -> Iterator[Suspect]:
    with connection.cursor() as cursor:
        cursor.execute(SUSPECTS, [limit])
        rows = cursor.fetchall()
    for workspace_id, kind, name, bad in rows:
        yield Suspect(workspace_id, GateKind(kind), name, bad)


@transaction.atomic
def _open_if_failing(suspect: Suspect) -> bool:
    known, _ = Breaker.objects.get_or_create(
        workspace_id=suspect.workspace_id,
        kind=suspect.kind,
        name=suspect.name,
        defaults={"since": _long_ago()},
    )
    breaker = Breaker.objects.select_for_update().get(id=known.id)
    # Another watchdog, or a person, may have opened it between our look and our lock.
    if breaker.state is not BreakerState.CLOSED:
        return False
    ended = _ended(breaker, most=2 * suspect.bad + 1)
    if ended < ATTEMPTS_MIN or 2 * suspect.bad < ended:
        return False
    _change(
        breaker,
        BreakerState.OPEN,
        rule="half_failed",
        grounds=f"{suspect.bad} of {ended} attempts within {WINDOW_S:g} s ended in a hang, "
        "a lost connection, a gateway time-out or a server error.",
        figures={"attempts": ended, "bad": suspect.bad, "window_s": WINDOW_S},
    )
    return True


def _long_ago() -> Any:
    """A breaker that nobody has judged yet looks back over the whole window."""
    return ClockTimestamp() - timedelta(seconds=WINDOW_S)


def _ended(breaker: Breaker, *, most: int) -> int:
    """How many attempts ended within the window since the breaker last changed, `most` at most."""
    with connection.cursor() as cursor:
        cursor.execute(
            ENDED.format(NAMED_BY[breaker.kind]),
            {"since": breaker.since, "workspace": breaker.workspace_id, "name": breaker.name,
             "most": most},
        )  # fmt: skip
        return int(cursor.fetchone()[0])


# The trial


@transaction.atomic
def _follow(breaker_id: UUID) -> bool:
    """Let a due trial pass, note that one passes, or judge the one that ended."""
    breaker = Breaker.objects.select_for_update(skip_locked=True).filter(id=breaker_id).first()
    if breaker is None or breaker.state is BreakerState.CLOSED:
        return False
    gate = _gate(breaker)
    if gate.trial_call_id is None:
        return _begin_trial(gate)
    if breaker.state is BreakerState.OPEN:
        _change(
            breaker,
            BreakerState.TRIAL,
            rule="trial",
            grounds="The time is over: one call passes, and its end decides.",
            figures={"call": gate.trial_call_id.hex},
        )
        return True
    return _judge(breaker, gate)


def _gate(breaker: Breaker) -> Gate:
    """The gate of a breaker that is not closed; where it is gone, one that is due."""
    gate, _ = Gate.objects.get_or_create(
        workspace_id=breaker.workspace_id,
        kind=breaker.kind,
        name=breaker.name,
        why=GateReason.BREAKER_OPEN,
        defaults={"trial_at": ClockTimestamp()},
    )
    return gate


def _begin_trial(gate: Gate) -> bool:
    waiting = gates.next_trial(gate.id)
    if waiting is None or not gates.admit(waiting.gate_ids, waiting.call_id):
        return False
    dispatch.ring_after_commit([waiting.queue], waiting.call_id)
    return True


def _judge(breaker: Breaker, gate: Gate) -> bool:
    """Close, open again, or let another call pass, by how the trial's attempt ended."""
    attempt = (
        Attempt.objects.filter(
            call=gate.trial_call_id, kind="run", claimed_at__gte=gate.admitted_at
        )
        .order_by("fence")
        .first()
    )
    if attempt is None:
        scheduled = ToolCall.objects.filter(state=CallState.SCHEDULED)
        waits = scheduled.filter(pk=gate.trial_call_id or UUID(int=0)).exists()
        return not waits and _again(breaker, "The trial's call ended without an attempt.")
    if attempt.ended_at is None:
        return False
    figures = {"call": attempt.call_id.hex, "fence": attempt.fence, "cause": str(attempt.cause)}
    if attempt.cause in REFUTES:
        grounds = f"The trial ended badly: {_in_words(attempt.cause)}."
        _change(breaker, BreakerState.OPEN, rule="trial_failed", grounds=grounds, figures=figures)
        return True
    if attempt.cause in SILENT or attempt.outcome == "released":
        said = attempt.cause or attempt.outcome
        return _again(breaker, f"The trial says nothing of the outside: {_in_words(said)}.")
    grounds = "The outside answered the trial."
    _change(breaker, BreakerState.CLOSED, rule="trial_passed", grounds=grounds, figures=figures)
    return True


def _in_words(code: str) -> str:
    return spoken(code)


def _again(breaker: Breaker, grounds: str) -> bool:
    """Let another call pass at once."""
    _change(breaker, BreakerState.OPEN, rule="trial_void", grounds=grounds)
    return True


# Changing


WAITS = {"trial_void": 0.0}
"""Seconds to the next trial where the rule says so; else they double with each opening."""


def _change(
    breaker: Breaker,
    target: BreakerState,
    *,
    grounds: str,
    rule: str = "",
    person: Any = None,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Move a breaker under its lock: its gate, its row, and the line that says who and why."""
    BreakerChange.objects.create(
        workspace_id=breaker.workspace_id,
        breaker=breaker,
        source=breaker.state,
        target=target,
        rule=rule,
        person=person,
        person_name=person.get_username() if person else "",
        grounds=grounds,
        figures=dict(figures or {}),
    )
    place = {"workspace_id": breaker.workspace_id, "kind": breaker.kind, "name": breaker.name}
    if target is BreakerState.OPEN:
        wait_s = WAITS.get(rule, min(OPEN_S * 2**breaker.openings, OPEN_MAX_S))
        gates.close(**place, why=GateReason.BREAKER_OPEN, trial_in_s=wait_s)
        breaker.openings = min(breaker.openings + (rule not in WAITS), 16)
    if target is BreakerState.CLOSED:
        gates.lift(**place, why=GateReason.BREAKER_OPEN)
        breaker.openings = 0
        dispatch.ring_after_commit(["effects", "reads"])
    Breaker.objects.filter(id=breaker.id).update(
        state=target, since=ClockTimestamp(), openings=breaker.openings
    )


def put(
    *, workspace_id: UUID, breaker_id: UUID, state: BreakerState, grounds: str, person: Any
) -> Breaker:
    """Open or close a breaker by a person's word; where it stands there already nothing changes.

    Raises NotFound, and Invalid without grounds or for `trial`, which only the machine begins.
    """
    if not grounds.strip():
        raise Invalid(detail="Every change needs grounds: say why in one sentence.")
    if state is BreakerState.TRIAL:
        raise Invalid(detail="A person opens or closes a breaker; a trial begins by itself.")
    with transaction.atomic():
        rows = Breaker.objects.select_for_update().filter(workspace=workspace_id)
        breaker = rows.filter(id=breaker_id).first()
        if breaker is None:
            raise NotFound(noun="breaker")
        if breaker.state is not state:
            _change(breaker, state, grounds=grounds, person=person)
        breaker.refresh_from_db()
    registered.forget()
    return breaker
