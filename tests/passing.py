"""Time passing for the whole ledger, and the ledger coming to rest.

The clock is never moved: every instant of what is still under way is moved back, all of them in
one statement, so that the distances between them stay (what has settled keeps its instants).
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.db import connection, models

from ledger import attempts, claims, settlements
from ledger.claims import Claim
from ledger.errors import LedgerError
from ledger.models import Attempt, Handle, ToolCall
from ledger.vocabulary import AttemptKind, Deadline, ProbeFinding
from ledger.workers import Holder
from recovery import reports, watchdog
from tests import builders

MOVED = {ToolCall: "id", Attempt: "call_id", Handle: "call_id"}
"""What time passes for, and the column that names the call."""
ROUNDS = 300
Calls = Sequence[UUID] | None


def _instants(model: type[models.Model]) -> Iterator[str]:
    """A settled call's instants are its events': the database would not let them be moved."""
    for field in model._meta.concrete_fields:
        if isinstance(field, models.DateTimeField) and field.column != "settled_at":
            yield str(field.column)


def _shift(model: type[models.Model], key: str) -> str:
    sets = ", ".join(f"{name} = {name} - %(s)s * interval '1 second'" for name in _instants(model))
    still_open = " AND settled_at IS NULL" if model is ToolCall else ""
    among = f"({{all}} OR {key} = ANY(%(calls)s))"
    return f"UPDATE {model._meta.db_table} SET {sets} WHERE {among}{still_open}"


PASS = "WITH {} SELECT".format(
    ", ".join(f"moved_{key}_{n} AS ({_shift(each, key)})"
              for n, (each, key) in enumerate(MOVED.items()))
)  # fmt: skip


def passes(seconds: float, calls: Calls = None) -> None:
    """Let that many seconds have passed for calls that are open, and for their attempts.

    For all calls, or for these only: the others' time stands still.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            PASS.format(all="true" if calls is None else "false"),
            {"s": seconds, "calls": list(calls or [])},
        )


def seconds_to_the_next_date(calls: Calls = None) -> float | None:
    """Until the earliest instant still ahead at which an open call's wait, or a grace, ends.

    An ambiguous call waits for a person: its dates do not count. None where nothing is ahead.
    """
    deadlines = ", ".join(f"c.{each}_at" for each in Deadline)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM min(at) - clock_timestamp())::float8 FROM ("
            f"SELECT c.id, unnest(ARRAY[{deadlines}]) AS at FROM ledger_toolcall c "
            "WHERE c.settled_at IS NULL AND c.state <> 'ambiguous' UNION ALL "
            "SELECT a.call_id, a.lease_until + interval '1 minute' FROM ledger_attempt a "
            "WHERE a.outcome = 'lost' AND a.dead_proof = '' AND a.fence_kind = 'kernel') ahead "
            "WHERE at > clock_timestamp() AND (%s OR id = ANY(%s))",
            [calls is None, list(calls or [])],
        )
        seconds: float | None = cursor.fetchone()[0]
        return seconds


def sweep() -> int:
    """One pass of the watchdog; a row that it cannot move is an error here."""
    return watchdog.find_dead_workers() + builders.fire() + watchdog.prove_dead()


def until_quiet(worker: Holder | None = None, calls: Calls = None) -> None:
    """Let time pass, date by date, until every open call is ambiguous and waits for a person.

    With a `worker`, a sound one answers whatever is due meanwhile. Raises AssertionError for a
    call that nobody will ever move: it has no date ahead and no sweep acts on it.
    """
    for _ in range(ROUNDS):
        done = sweep() + (work(worker) if worker else 0)
        left = ToolCall.objects.open().exclude(state="ambiguous")
        left = left if calls is None else left.filter(id__in=calls)
        if not done and not left.exists():
            return
        if not done:
            ahead = seconds_to_the_next_date(calls)
            assert ahead is not None, f"no date ahead: {list(left.values('id', 'state', 'reason'))}"
            passes(ahead + 0.01, calls)
    raise AssertionError(f"{ROUNDS} rounds brought no rest: {list(left.values('id', 'state'))}")


# A sound worker


def work(worker: Holder) -> int:
    """Claim all that is due and answer it soundly; how much there was."""
    won = [
        claim
        for queue in builders.ALL_QUEUES
        for claim in claims.claim(queue=queue, holder=worker, limit=20)
    ]
    for claim in won:
        answer(claim)
    return len(won)


def answer(claim: Claim) -> None:
    """Do what the attempt is for: act and succeed; a probe does not know."""
    if claim.kind is AttemptKind.PROBE:
        reports.probed(claim=claim, finding=ProbeFinding.UNKNOWN)
        return
    if claim.kind is AttemptKind.RUN and claim.policy.recovery_class != "read_only":
        try:
            attempts.cross(call_id=claim.call_id, fence=claim.fence)
        except LedgerError:
            attempts.release(call_id=claim.call_id, fence=claim.fence, grounds="It may not begin.")
            return
    settlements.settle([builders.settlement(claim)])
