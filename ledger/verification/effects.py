"""Effects and attempts: I1 to I10."""

from ledger.verification.budgets import ACCOUNT
from ledger.verification.shapes import Check, Invariant
from ledger.verification.standing import stands

ORPHANS = {
    "attempt": "fence",
    "event": "seq",
    "result": "event_seq",
    "evidence": "kind",
    "handle": "fence",
    "fetched": "reader",
}
# Which calls refer to others: their own ids, and the column that names the other.
STRAYS = (("call", "id", "twin_of_id"), ("interrupt", "call_id", "waits_for_id"))


def _orphans(noun: str, column: str) -> Check:
    return Check(
        f"SELECT x.call_id, '{noun}' AS orphan, x.{column} FROM {noun} x "  # noqa: S608 names of our own
        "WHERE NOT EXISTS (SELECT FROM ledger_toolcall c WHERE c.id = x.call_id)"
    )


def _strays(noun: str, call_id: str, column: str) -> Check:
    return Check(
        f"SELECT x.{call_id} AS call_id, '{noun}.{column}' AS stray, x.{column} FROM {noun} x "  # noqa: S608 names of our own
        f"WHERE x.{column} IS NOT NULL "
        f"AND NOT EXISTS (SELECT FROM ledger_toolcall c WHERE c.id = x.{column})"
    )


I1 = Invariant(
    "I1",
    "A side_effect call has at most one crossing that nobody has disproved.",
    (
        Check(
            "SELECT a.call_id, array_agg(a.fence ORDER BY a.fence) AS crossed_fences "
            "FROM attempt a JOIN call c ON c.id = a.call_id "
            "WHERE c.recovery_class = 'side_effect' AND a.crossed_at IS NOT NULL "
            "AND NOT EXISTS (SELECT FROM disproof d WHERE d.attempt_id = a.id) "
            "GROUP BY a.call_id HAVING count(*) > 1"
        ),
    ),
)

I2 = Invariant(
    "I2",
    "'Did not happen' is recorded only for an attempt proven dead, after its unlock time.",
    (
        # A probe's no counts from the instant it was asked, a person's from when it was given.
        Check(
            "SELECT e.call_id, e.seq, e.kind, e.actor, a.fence, a.dead_proof, a.unlocks_at "
            "FROM chain e JOIN attempt a ON a.call_id = e.call_id AND a.crossed_at <= e.at "
            "AND a.means NOT IN ('not_begun', 'refused') "
            "WHERE e.from_state IN ('interrupted', 'ambiguous') AND e.was_effect = 'possible' "
            "AND e.effect = 'did_not_happen' AND (a.dead_proof = '' OR (a.unlocks_at <= "
            "CASE e.actor WHEN 'operator' THEN e.at ELSE (SELECT max(p.claimed_at) FROM attempt p "
            "WHERE p.call_id = e.call_id AND p.kind = 'probe' AND p.finding = 'did_not_happen' "
            "AND p.ended_at <= e.at) END) IS NOT TRUE)"
        ),
        Check(
            "SELECT r.call_id, r.id AS resolution, a.fence, a.dead_proof, a.unlocks_at, r.at "
            "FROM resolution r LEFT JOIN attempt a ON a.id = r.attempt_id "
            "AND a.call_id = r.call_id WHERE r.answer = 'did_not_happen' "
            "AND (a.dead_proof <> '' AND r.at >= a.unlocks_at) IS NOT TRUE"
        ),
        stands(
            [
                ("recovery_resolution", "deny_only_the_dead"),
                ("ledger_event", "denial_guard"),
            ]
        ),
        # One attempt's answer says nothing of another that crossed before it.
        Check(
            "SELECT a.call_id, a.fence, a.means, a.disproved_at FROM attempt a "
            "WHERE a.disproved_at IS NOT NULL "
            "AND NOT EXISTS (SELECT FROM disproof d WHERE d.attempt_id = a.id)"
        ),
        # "I changed nothing" may mean that the attempt before had done it already.
        Check(
            "SELECT e.call_id, e.seq, e.fence, a.fence AS crossed_before FROM chain e "
            "JOIN attempt a ON a.call_id = e.call_id AND a.fence < e.fence "
            "AND a.crossed_at IS NOT NULL AND a.outcome <> 'parked' "
            "WHERE e.kind = 'succeeded' AND e.effect = 'did_not_happen' "
            "AND NOT EXISTS (SELECT FROM disproof d WHERE d.attempt_id = a.id)"
        ),
    ),
)

I3 = Invariant(
    "I3",
    "A crossing was gated: one crossed event of its fence, in its lease, before any later fence.",
    (
        Check(
            "SELECT a.call_id, a.fence, a.crossed_at FROM attempt a "
            "LEFT JOIN chain e ON e.call_id = a.call_id AND e.fence = a.fence "
            "AND e.kind = 'crossed' AND e.at < e.lease_until AND e.greatest_fence = e.fence "
            "WHERE a.crossed_at IS NOT NULL "
            "GROUP BY a.id, a.call_id, a.fence, a.crossed_at HAVING count(e.seq) <> 1"
        ),
        Check(
            "SELECT e.call_id, e.seq, e.fence FROM chain e LEFT JOIN attempt a "
            "ON a.call_id = e.call_id AND a.fence = e.fence AND a.crossed_at IS NOT NULL "
            "WHERE e.kind = 'crossed' AND a.id IS NULL"
        ),
    ),
)

I4 = Invariant(
    "I4",
    "Intent comes first: nothing without its call, and no effect without a committed boundary.",
    (
        *(_orphans(noun, column) for noun, column in ORPHANS.items()),
        *(_strays(*reference) for reference in STRAYS),
        Check(
            "SELECT c.id AS call_id, c.state, c.effect FROM call c "
            "WHERE c.recovery_class <> 'read_only' AND c.effect IN ('possible', 'happened') "
            "AND NOT EXISTS (SELECT FROM attempt a WHERE a.call_id = c.id "
            "AND a.crossed_at IS NOT NULL) AND NOT EXISTS (SELECT FROM event e "
            "WHERE e.call_id = c.id AND (e.kind = 'imported' OR e.cause = 'restored'))"
        ),
    ),
)

I5 = Invariant(
    "I5",
    "Fences grow: each is given once, and the call carries the greatest.",
    (
        Check(
            "SELECT c.id AS call_id, c.fence, m.fence AS greatest FROM call c LEFT JOIN "
            "(SELECT call_id, max(fence) AS fence FROM attempt GROUP BY call_id) m "
            "ON m.call_id = c.id WHERE c.fence <> coalesce(m.fence, 0)"
        ),
        stands([("ledger_attempt", "attempt_fence_once")]),
    ),
)

I6 = Invariant(
    "I6",
    "A call has at most one live attempt.",
    (
        Check(
            "SELECT a.call_id, count(*) AS live FROM attempt a WHERE a.ended_at IS NULL "
            "GROUP BY a.call_id HAVING count(*) > 1"
        ),
        stands([("ledger_attempt", "one_live_attempt")]),
    ),
)

I7 = Invariant(
    "I7",
    "Attempts are bounded and counted, each repeat has its line on the account, and no turn, "
    "session or tool is overdrawn; released ones, polls and probes spend nothing.",
    (
        # A person who clears a call for a repeat writes the one attempt more into the call.
        Check(
            "SELECT c.id AS call_id, coalesce(r.runs, 0) AS runs, c.attempts_used, "
            "c.attempts_allowed FROM call c LEFT JOIN (SELECT call_id, count(*) AS runs "
            "FROM attempt WHERE kind = 'run' AND outcome <> 'released' GROUP BY call_id) r "
            "ON r.call_id = c.id WHERE coalesce(r.runs, 0) <> c.attempts_used "
            "OR r.runs > c.attempts_allowed"
        ),
        *ACCOUNT,
    ),
)

I8 = Invariant(
    "I8",
    "No unattended second try: after a crossed side_effect attempt a run needs its disproof first.",
    (
        Check(
            "SELECT a.call_id, a.fence AS crossed_fence, b.fence AS later_fence "
            "FROM attempt a JOIN call c ON c.id = a.call_id AND c.recovery_class = 'side_effect' "
            "JOIN attempt b ON b.call_id = a.call_id AND b.fence > a.fence AND b.kind = 'run' "
            "WHERE a.crossed_at IS NOT NULL AND NOT EXISTS (SELECT FROM disproof d "
            "WHERE d.attempt_id = a.id AND d.at <= b.claimed_at)"
        ),
    ),
)

I9 = Invariant(
    "I9",
    "All attempts of an idempotent_write carry the call's one key or target, never an empty one.",
    (
        Check(
            "SELECT c.id AS call_id, a.fence, a.effect_key, c.effect_key AS key_of_call "
            "FROM call c JOIN attempt a ON a.call_id = c.id "
            "WHERE c.recovery_class = 'idempotent_write' "
            "AND (a.effect_key = c.effect_key AND a.effect_key <> '') IS NOT TRUE"
        ),
    ),
)

I10 = Invariant(
    "I10",
    "A long_running call with a handle is resumed by it, never started again beside it.",
    (
        Check(
            "SELECT h.call_id, h.fence AS handle_of_fence, b.fence AS started_again "
            "FROM handle h JOIN call c ON c.id = h.call_id AND c.recovery_class = 'long_running' "
            "JOIN attempt b ON b.call_id = h.call_id AND b.kind = 'run' AND b.fence > h.fence "
            "WHERE (least(h.lost_at, h.ended_at) <= b.claimed_at) IS NOT TRUE "
            "AND NOT EXISTS (SELECT FROM attempt a "
            "JOIN disproof d ON d.attempt_id = a.id AND d.at <= b.claimed_at "
            "WHERE a.call_id = h.call_id AND a.fence = h.fence)"
        ),
    ),
)

EFFECTS = (I1, I2, I3, I4, I5, I6, I7, I8, I9, I10)
