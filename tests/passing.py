"""Time passing for the ledger, and the ledger coming to rest.

The clock is never moved: every instant in every row is moved back, the events' too, so that all
distances stay as they are. That needs PostgreSQL's guards to look away for one transaction, and
the events to be hashed anew: the record then reads as if all of it had been written earlier.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.apps import apps
from django.db import connection, models, transaction

from ledger import attempts, claims, settlements
from ledger.claims import Claim
from ledger.errors import LedgerError
from ledger.models import ToolCall, Worker
from ledger.vocabulary import AttemptKind, Cause, Deadline, Meaning, ProbeFinding
from ledger.workers import Holder
from recovery import reports, resolutions, watchdog
from tests import builders

STAYS = (Worker,)
"""When a worker took its lock is held against the start of the server, which nobody can move."""
ROUNDS = 300
Calls = Sequence[UUID] | None

HASH_ANEW = """DO $$ DECLARE e ledger_event; last bytea := ''; BEGIN
  FOR e IN SELECT * FROM ledger_event WHERE {among} ORDER BY call_id, seq LOOP
    e.prev_hash := CASE e.seq WHEN 1 THEN '' ELSE last END;
    last := ledger_event_hash(e);
    UPDATE ledger_event SET prev_hash = e.prev_hash, hash = last
     WHERE call_id = e.call_id AND seq = e.seq;
  END LOOP;
  UPDATE ledger_toolcall c SET head_hash = h.hash FROM ledger_event h
   WHERE h.call_id = c.id AND h.seq = c.seq AND {among};
END $$"""


def _moved() -> Iterator[tuple[type[models.Model], str]]:
    """The models with instants, and the column that names the call; "" where none does."""
    for model in (*apps.get_app_config("ledger").get_models(),
                  *apps.get_app_config("recovery").get_models()):  # fmt: skip
        columns = [str(each.column) for each in model._meta.concrete_fields]
        key = "id" if model is ToolCall else "call_id" if "call_id" in columns else ""
        if model not in STAYS and _instants(model):
            yield model, key


def _instants(model: type[models.Model]) -> list[str]:
    return [
        str(each.column)
        for each in model._meta.concrete_fields
        if isinstance(each, models.DateTimeField) and not each.generated
    ]


def _shift(model: type[models.Model], seconds: float, among: str) -> str:
    sets = ", ".join(f"{name} = {name} - interval '{seconds} s'" for name in _instants(model))
    return f"UPDATE {model._meta.db_table} SET {sets} WHERE {among}"


def passes(seconds: float, calls: Calls = None) -> None:
    """Let that many seconds have passed: for everything, or for these calls only."""
    ids = ", ".join(f"'{each}'" for each in calls or ())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for model, key in _moved():
            if calls is None or key:
                among = "true" if calls is None else f"{key} IN ({ids})"
                cursor.execute(_shift(model, seconds, among))
        among = "true" if calls is None else f"call_id IN ({ids})"
        cursor.execute(HASH_ANEW.format(among=among))
        cursor.execute("SET LOCAL session_replication_role = origin")


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
    decided = resolutions.carry_out_due()
    return decided + watchdog.find_dead_workers() + builders.fire() + watchdog.prove_dead()


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
        except LedgerError as refusal:
            reports.ended(
                claim=claim, cause=Cause.NOT_BEGUN_REPORTED, means=Meaning.NOT_BEGUN,
                message=str(refusal),
            )  # fmt: skip
            return
    settlements.settle([builders.settlement(claim)])
