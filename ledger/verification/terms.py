"""The words in which the invariants are written, as common table expressions.

`call`, `attempt`, `event`, `result`, `evidence`, `handle`, `interrupt`, `incident`, `resolution`,
`notice`, `repeat` and `delivery` are the rows under examination: all, or those of calls that are
open or had an event since an instant. `chain` is each event beside what went before it in its
call, `fold` a call's events counted, `disproof` what proved that a crossing had no effect, and
when. `bound` is one row of instants and limits. `standing` lists the guards that PostgreSQL has in
force.
"""

PLAIN = {
    "call": ("ledger_toolcall", "id"),
    "attempt": ("ledger_attempt", "call_id"),
    "result": ("ledger_result", "call_id"),
    "evidence": ("ledger_evidence", "call_id"),
    "handle": ("ledger_handle", "call_id"),
    "fetched": ("ledger_fetch", "call_id"),
    "interrupt": ("ledger_interrupt", "call_id"),
    "incident": ("recovery_incident", "call_id"),
    "resolution": ("recovery_resolution", "call_id"),
    "notice": ("ledger_notice", "call_id"),
    "repeat": ("recovery_repeat", "call_id"),
    "delivery": ("ledger_delivery", "call_id"),
}

# The statement's instant, not clock_timestamp(): what is due while a long statement runs is not
# overdue in the rows that it saw.
BOUND = """bound AS (SELECT statement_timestamp() AS now,
  make_interval(secs => %(sweep_s)s) AS sweep, make_interval(secs => %(slack_s)s) AS slack,
  make_interval(secs => %(grace_s)s) AS grace)"""

TOUCHED = """touched AS MATERIALIZED (
  SELECT call_id AS id FROM ledger_event WHERE at >= %(since)s
  UNION SELECT id FROM ledger_toolcall WHERE settled_at IS NULL)"""

EVENT = """event AS NOT MATERIALIZED (
  SELECT e.*, ledger_event_hash(e) AS hash_again FROM ledger_event e{touched})"""

# Walks the primary key once; whoever needs a neighbour of an event asks here.
CHAIN = """chain AS MATERIALIZED (
  SELECT e.call_id, e.seq, e.kind, e.from_state, e.to_state, e.effect, e.actor, e.actor_id, e.at,
    e.fence, e.lease_until, e.settles,
    CASE WHEN e.kind IN ('recorded', 'imported', 'started', 'adopted', 'abandoned')
      THEN e.facts END AS facts,
    lag(e.seq, 1, 0) OVER story AS was_seq, lag(e.to_state, 1, '') OVER story AS was_state,
    lag(e.effect) OVER story AS was_effect, lag(e.at) OVER story AS was_at,
    e.prev_hash IS DISTINCT FROM coalesce(lag(e.hash) OVER story, ''::bytea) AS link_is_broken,
    max(e.fence) OVER story AS greatest_fence,
    coalesce(bool_or(e.settles) OVER (PARTITION BY e.call_id ORDER BY e.seq
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false) AS after_settlement
  FROM ledger_event e{touched}
  WINDOW story AS (PARTITION BY e.call_id ORDER BY e.seq ROWS UNBOUNDED PRECEDING))"""

FOLD = """fold AS MATERIALIZED (
  SELECT call_id, count(*) AS events, max(seq) AS last_seq,
    count(*) FILTER (WHERE settles) AS settlements FROM chain GROUP BY call_id)"""

# In order: the tool itself proved that nothing happened; its known error means so by policy; an
# authoritative probe of a dead attempt said no; the work that was polled, which is that of the
# last crossing, was refused; a person ruled it.
DISPROOF = """disproof(attempt_id, at) AS MATERIALIZED (
  SELECT a.id, a.ended_at FROM attempt a
   WHERE a.crossed_at IS NOT NULL AND a.means IN ('not_begun', 'refused')
  UNION ALL
  SELECT a.id, r.ended_at FROM attempt r JOIN call c ON c.id = r.call_id
    JOIN ledger_policy p ON p.id = c.policy_id
    JOIN attempt a ON a.call_id = r.call_id AND a.crossed_at IS NOT NULL
     AND (a.id = r.id OR r.kind <> 'run' AND a.fence < r.fence)
   WHERE r.means = 'known' AND r.outcome = 'ended'
     AND p.document ->> 'tool_error_means' = 'no_effect'
  UNION ALL
  SELECT a.id, r.ended_at FROM attempt r JOIN call c ON c.id = r.call_id
    JOIN ledger_policy p ON p.id = c.policy_id
    JOIN attempt a ON a.call_id = r.call_id AND a.crossed_at IS NOT NULL AND a.fence < r.fence
   WHERE r.kind = 'probe' AND r.finding = 'did_not_happen'
     AND p.document #>> '{{probe,authoritative}}' = 'true'
     AND a.dead_proof <> '' AND r.claimed_at >= a.unlocks_at
  UNION ALL
  SELECT a.id, r.ended_at FROM attempt r
    JOIN attempt a ON a.call_id = r.call_id AND a.crossed_at IS NOT NULL AND a.fence < r.fence
   WHERE r.kind = 'poll' AND r.means = 'refused' AND r.outcome = 'ended'
     AND NOT EXISTS (SELECT FROM attempt b WHERE b.call_id = r.call_id AND b.fence > a.fence
       AND b.fence < r.fence AND b.crossed_at IS NOT NULL)
  UNION ALL
  SELECT a.id, e.at FROM chain e
    JOIN attempt a ON a.call_id = e.call_id AND a.crossed_at <= e.at
   WHERE e.actor = 'operator' AND e.effect = 'did_not_happen' AND e.was_effect = 'possible')"""

STANDING = """standing(tbl, name) AS MATERIALIZED (
  WITH own AS MATERIALIZED (SELECT oid, relname::text FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace)
  SELECT o.relname, c.conname::text FROM pg_constraint c JOIN own o ON o.oid = c.conrelid
   WHERE c.contype IN ('u', 'f', 'c') AND c.convalidated
     AND to_jsonb(c) ->> 'conenforced' IS DISTINCT FROM 'false'
  UNION ALL
  SELECT o.relname, x.relname FROM pg_index i JOIN own o ON o.oid = i.indrelid
    JOIN own x ON x.oid = i.indexrelid WHERE i.indisunique AND i.indisvalid
  UNION ALL
  SELECT o.relname, regexp_replace(t.tgname, '^pgtrigger_(.*)_[0-9a-f]+$', '\\1')
    FROM pg_trigger t JOIN own o ON o.oid = t.tgrelid
   WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A'))"""


def defined(narrowed: bool) -> str:
    """The whole WITH clause; its parameters are `since`, `sweep_s`, `slack_s`, `grace_s`."""
    among = " WHERE {}.{} IN (SELECT id FROM touched)" if narrowed else ""
    touched = among.format("e", "call_id")
    plain = [
        f"{name} AS NOT MATERIALIZED (SELECT t.* FROM {table} t{among.format('t', key)})"  # noqa: S608 names of our own
        for name, (table, key) in PLAIN.items()
    ]
    derived = [term.format(touched=touched) for term in (EVENT, CHAIN, FOLD, DISPROOF)]
    return "WITH " + ",\n".join(
        [BOUND, *([TOUCHED] if narrowed else []), *plain, *derived, STANDING]
    )
