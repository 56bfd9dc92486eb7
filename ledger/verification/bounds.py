"""Bounds and liveness: I24 to I30."""

from ledger import interrupts, machine, policies
from ledger.verification.shapes import Check, Invariant
from ledger.verification.standing import stands
from ledger.vocabulary import OPEN, CallState, Deadline

S, D = CallState, Deadline

MUST_BE_ARMED: dict[CallState, tuple[Deadline, ...]] = {
    S.RECORDED: (D.SCHEDULE_TO_CLOSE,),
    S.PAUSED: (D.INTERRUPT_EXPIRY,),
    S.SCHEDULED: (D.SCHEDULE_TO_START, D.SCHEDULE_TO_CLOSE),
    S.RUNNING: (D.START_TO_CLOSE, D.HEARTBEAT, D.SCHEDULE_TO_CLOSE),
    S.PARKED: (D.NEXT_POLL, D.SCHEDULE_TO_CLOSE),
    S.BACKING_OFF: (D.BACKOFF, D.SCHEDULE_TO_CLOSE),
    S.INTERRUPTED: (D.RECOVERY_WINDOW,),
    S.AMBIGUOUS: (D.REVIEW,),
}
"""Without these a call of that state would wait for ever (semantics, section 2)."""

WAITS_FOR_A_WORKER = {
    D.NEXT_POLL: "c.state = 'parked'",
    D.NEXT_STEP: "c.reason = 'probe_due'",
    # In `interrupted` it only says that no attempt may begin any more; the window ends the wait.
    D.SCHEDULE_TO_CLOSE: "c.state = 'interrupted'",
    # It stands still while an unresolved call of the turn holds this one.
    D.SCHEDULE_TO_START: "c.held_at >= c.published_at",
}
"""Deadlines that no sweep fires under a condition; another deadline bounds the wait."""


def _swept() -> str:
    """The earliest deadline that a sweep has to fire."""
    columns = (
        f"CASE WHEN {WAITS_FOR_A_WORKER[each]} THEN NULL ELSE c.{each}_at END"
        if each in WAITS_FOR_A_WORKER
        else f"c.{each}_at"
        for each in Deadline
    )
    return f"least({', '.join(columns)})"


def _badly_armed(state: CallState) -> str:
    """The condition under which a call of this state misses a deadline, or has a foreign one."""
    missing = [f"c.{each}_at IS NULL" for each in MUST_BE_ARMED[state]]
    foreign = [f"c.{each}_at IS NOT NULL" for each in Deadline if each not in machine.TIMERS[state]]
    return f"c.state = '{state}' AND ({' OR '.join(missing + foreign)})"


AUTH_CAP_S = policies.BOUNDS["timeouts.schedule_to_close_s"].auth
INCIDENT_STATES = "('interrupted', 'ambiguous')"

I24 = Invariant(
    "I24",
    "Every open call and interrupted turn has a deadline, and none of a sweep's is overdue.",
    (
        Check(
            "SELECT c.id AS call_id, c.state FROM call c "
            "WHERE c.settled_at IS NULL AND c.due_at IS NULL"
        ),
        stands([("ledger_toolcall", "open_call_has_deadline")]),
        Check(
            "SELECT c.id AS call_id, c.state, c.reason, c.due_at FROM call c, bound b "  # noqa: S608 names of our own
            f"WHERE c.settled_at IS NULL AND {_swept()} < b.now - 2 * b.sweep - b.slack",
            liveness=True,
        ),
        # An interrupted turn waits for its calls no longer than its grace.
        Check(
            "SELECT NULL::uuid AS call_id, t.id AS turn, t.grace_until FROM ledger_turn t, bound b "
            "WHERE t.interrupted_at IS NOT NULL AND t.closed_at IS NULL "
            "AND t.grace_until < b.now - 2 * b.sweep - b.slack",
            liveness=True,
        ),
    ),
)

I25 = Invariant(
    "I25",
    "Each open call has the deadlines of its state, no others, and a lease while one is held.",
    (
        Check(
            "SELECT c.id AS call_id, c.state, "  # noqa: S608 names of our own
            + ", ".join(f"c.{each}_at" for each in Deadline)
            + " FROM call c WHERE c.settled_at IS NULL AND ("
            + " OR ".join(map(_badly_armed, sorted(OPEN)))
            + ")"
        ),
        Check(
            "SELECT c.id AS call_id, c.state, c.heartbeat_at, a.fence AS live_fence FROM call c "
            "LEFT JOIN attempt a ON a.call_id = c.id AND a.ended_at IS NULL "
            "WHERE c.settled_at IS NULL AND (c.heartbeat_at IS NULL) <> (a.id IS NULL)"
        ),
    ),
)

I26 = Invariant(
    "I26",
    "No trust in the doorbell: every scheduled call is rung again within its interval.",
    (
        Check(
            "SELECT c.id AS call_id, c.published_at, c.rings FROM call c "
            "WHERE c.state = 'scheduled' AND c.ring_at IS NULL"
        ),
        Check(
            "SELECT c.id AS call_id, c.ring_at, c.rings FROM call c, bound b "
            "WHERE c.state = 'scheduled' AND c.ring_at < b.now - 2 * b.sweep - b.slack",
            liveness=True,
        ),
    ),
)

I27 = Invariant(
    "I27",
    "Leases end: no attempt is open past its lease, the grace and one sweep.",
    (
        Check(
            "SELECT a.call_id, a.fence, a.lease_until FROM attempt a, bound b "
            "WHERE a.ended_at IS NULL AND a.lease_until < b.now - b.grace - b.sweep",
            liveness=True,
        ),
    ),
)

# Canonical JSON has its keys in order, and what may quote them, the arguments, comes last. No
# cast: a text that is no JSON must be found, not raise.
COMPLETE = r"^\{" + ",".join(f'"{key}":.*' for key in interrupts.SNAPSHOT_KEYS) + r"\}$"

I28 = Invariant(
    "I28",
    "A paused call has an unanswered interrupt with an expiry and a complete snapshot.",
    (
        Check(
            "SELECT c.id AS call_id, c.state FROM call c WHERE c.state = 'paused' "
            "AND NOT EXISTS (SELECT FROM interrupt i WHERE i.call_id = c.id "
            "AND i.ended_at IS NULL AND i.expires_at IS NOT NULL)"
        ),
        Check(
            "SELECT i.call_id, i.id AS interrupt, c.state FROM interrupt i "
            "JOIN call c ON c.id = i.call_id WHERE i.ended_at IS NULL AND c.state <> 'paused'"
        ),
        Check(
            "SELECT i.call_id, i.id AS interrupt FROM interrupt i "  # noqa: S608 names of our own
            "WHERE i.snapshot_sha256 <> encode(sha256(convert_to(i.snapshot, 'UTF8')), 'hex') "
            f"OR i.snapshot !~ '{COMPLETE}'"
        ),
        stands([("ledger_interrupt", "interrupt_guard")]),
    ),
)

# The recording and the arming are one transaction, each at an instant of its own.
AUTH_ENDS_S = (AUTH_CAP_S or 0) + 1
I29 = Invariant(
    "I29",
    "provider_auth is bounded: its last deadline lies within the lifetime cap from its recording.",
    (
        Check(
            "SELECT c.id AS call_id, c.recorded_at, c.schedule_to_close_at FROM call c "  # noqa: S608 a number of the policies
            "WHERE c.recovery_class = 'provider_auth' AND c.settled_at IS NULL "
            f"AND c.schedule_to_close_at > c.recorded_at + interval '{AUTH_ENDS_S:g} seconds'"
        ),
    ),
)

I30 = Invariant(
    "I30",
    "Each interrupted or ambiguous call has exactly one open recovery incident, and no other has.",
    (
        Check(
            "SELECT c.id AS call_id, c.state, count(i.id) AS open_incidents FROM call c "  # noqa: S608 a constant
            "LEFT JOIN incident i ON i.call_id = c.id AND i.kind = 'recovery' "
            f"AND i.closed_at IS NULL WHERE c.state IN {INCIDENT_STATES} "
            "GROUP BY c.id, c.state HAVING count(i.id) <> 1"
        ),
        Check(
            "SELECT i.call_id, i.id AS incident, c.state FROM incident i "  # noqa: S608 a constant
            "JOIN call c ON c.id = i.call_id WHERE i.kind = 'recovery' AND i.closed_at IS NULL "
            f"AND c.state NOT IN {INCIDENT_STATES}"
        ),
        # What waits for a person has a date at which somebody is asked again.
        Check(
            "SELECT i.call_id, i.id AS incident, i.kind, i.state FROM incident i "
            "WHERE i.closed_at IS NULL AND (i.kind <> 'recovery' OR i.state = 'exhausted') "
            "AND (i.review_at IS NULL OR i.remind_at IS NULL)"
        ),
        stands(
            [
                ("recovery_incident", "one_open_recovery_incident"),
                ("recovery_incident", "incident_state_says_closed"),
            ]
        ),
    ),
)

BOUNDS = (I24, I25, I26, I27, I28, I29, I30)
