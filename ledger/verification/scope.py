"""Identity and scope: I31 to I34."""

from ledger import guards
from ledger.verification.shapes import Check, Invariant
from ledger.verification.standing import stands
from ledger.verification.terms import PLAIN

# References that carry their workspace without a composite key of their own. Those from one call
# to another have none on purpose: checking it at the commit locks the other call's row, out of
# the order in which a batch that settles both locks them. No call is ever deleted.
UNGUARDED = (
    ("ledger_toolcall", "twin_of_id", "ledger_toolcall"),
    ("ledger_interrupt", "waits_for_id", "ledger_toolcall"),
    ("recovery_incident", "session_id", "ledger_session"),
    ("ledger_toolcall", "handed_off_id", "ledger_handoff"),
    ("ledger_handoff", "from_session_id", "ledger_session"),
    ("ledger_handoff", "to_session_id", "ledger_session"),
    ("ledger_handoff", "to_agent_id", "ledger_agent"),
    ("ledger_compaction", "session_id", "ledger_session"),
    ("ledger_compactioncheck", "compaction_id", "ledger_compaction"),
    ("ledger_chunk", "attempt_id", "ledger_attempt"),
    ("ledger_drift", "session_id", "ledger_session"),
)
KEPT_BY_KEYS = (*guards.SAME_WORKSPACE, *guards.OF_RECOVERY)
UNIQUE_IN_WORKSPACE = (
    ("ledger_agent", "agent_in_workspace"),
    ("ledger_session", "session_in_workspace"),
    ("ledger_turn", "turn_in_workspace"),
    ("ledger_tool", "tool_in_workspace"),
    ("ledger_toolversion", "tool_version_in_workspace"),
    ("ledger_policy", "policy_in_workspace"),
    ("ledger_toolcall", "call_in_workspace"),
    ("recovery_breaker", "breaker_in_workspace"),
    ("ledger_import", "import_in_workspace"),
    ("ledger_offer", "offer_in_workspace"),
)
TERMS = {table: (name, key) for name, (table, key) in PLAIN.items()} | {
    "ledger_event": ("event", "call_id")
}


def _agree(table: str, column: str, target: str) -> Check:
    """A check that a row and what it refers to are of one workspace; orphans are I4's."""
    rows, key = TERMS.get(table, (table, ""))
    call = f"s.{key}" if key else "NULL::uuid"
    return Check(
        f"SELECT {call} AS call_id, '{table}.{column}' AS reference, s.workspace_id, "  # noqa: S608 names of our own
        f"t.workspace_id AS of_target FROM {rows} s JOIN {target} t ON t.id = s.{column} "
        "WHERE t.workspace_id <> s.workspace_id"
    )


I31 = Invariant(
    "I31",
    "One workspace: a call and all that refers to it or that it refers to belong to the same.",
    (
        *(_agree(*reference) for reference in (*KEPT_BY_KEYS, *UNGUARDED)),
        stands(
            [
                *((table, f"{table}_{column}_ws") for table, column, _ in KEPT_BY_KEYS),
                *UNIQUE_IN_WORKSPACE,
            ]
        ),
    ),
)

# Who owned call `c` at an instant: the receiver of its last hand-off before, else who asked for it.
OWNER_AT = (
    "coalesce((SELECT o.to_session_id FROM ledger_handoff o WHERE c.handed_off_id IS NOT NULL "
    "AND o.ended_as = 'accepted' AND c.id = ANY(o.calls) AND o.ended_at {before} {at} "
    "ORDER BY o.ended_at DESC LIMIT 1), c.session_id)"
)
OPEN_AT = "c.recorded_at <= {at} AND (c.settled_at IS NULL OR c.settled_at > {at})"

I32 = Invariant(
    "I32",
    "No identity drift: a call keeps the agent, session and binding epoch it was recorded under, "
    "and no attempt lives through a re-bind of its session.",
    (
        Check(
            "SELECT c.id AS call_id, c.agent_id, s.agent_id AS agent_of_session, c.binding_epoch, "
            "s.epoch FROM call c JOIN ledger_session s ON s.id = c.session_id "
            "WHERE c.agent_id <> s.agent_id OR c.binding_epoch > s.epoch"
        ),
        Check(
            "SELECT c.id AS call_id, c.session_id, t.session_id AS session_of_turn FROM call c "
            "JOIN ledger_turn t ON t.id = c.turn_id "
            "WHERE t.session_id IS DISTINCT FROM c.session_id"
        ),
        # A re-bind locks the open calls, fences their attempts, and is written last.
        Check(
            "SELECT a.call_id, a.fence, a.claimed_at, h.at AS rebound_at FROM attempt a "  # noqa: S608 a constant
            "JOIN call c ON c.id = a.call_id JOIN ledger_sessionchange h "
            f"ON h.session_id = {OWNER_AT.format(before='<=', at='h.at')} AND h.kind = 'rebound' "
            "WHERE a.claimed_at < h.at AND coalesce(a.ended_at, 'infinity') > h.at"
        ),
        # Only these kinds may carry an epoch, and their facts are flat.
        Check(
            "SELECT e.call_id, e.seq, e.kind, c.binding_epoch FROM chain e "
            "JOIN call c ON c.id = e.call_id WHERE e.kind IN ('recorded', 'started') "
            "AND substring(e.facts FROM '\"epoch\":([0-9]{1,9})[,}]')::int <> c.binding_epoch"
        ),
    ),
)

I34 = Invariant(
    "I34",
    "A session has at most one open turn, and equal submits are one call.",
    (
        stands(
            [
                ("ledger_turn", "one_open_turn"),
                ("ledger_toolcall", "call_key_once"),
                ("ledger_toolcall", "call_natural_key_once"),
            ]
        ),
    ),
)


def _keeps_open_set(
    kept: str, session: str, at: str, listed: str, before: str
) -> tuple[Check, ...]:
    """Checks that rows `k` list the calls that were open in their session then, and no other."""
    owner = OWNER_AT.format(before=before, at=at)
    stood = f"{OPEN_AT.format(at=at)} AND {owner} = {session}"
    # Calls that a session took over are few: looked up by the hand-offs to it.
    candidates = (
        f"SELECT c.* FROM call c WHERE c.session_id = {session} UNION ALL "  # noqa: S608 constants of this module
        "SELECT c.* FROM ledger_handoff t, unnest(t.calls) AS u(id) JOIN call c ON c.id = u.id "
        f"WHERE t.to_session_id = {session} AND t.ended_as = 'accepted' "
        f"AND c.session_id IS DISTINCT FROM {session}"
    )
    return (
        Check(
            f"SELECT c.id AS call_id, k.id AS dropped_by FROM {kept} "  # noqa: S608 constants of this module
            f"CROSS JOIN LATERAL ({candidates}) c WHERE {stood} AND c.id <> ALL({listed})"
        ),
        Check(
            f"SELECT c.id AS call_id, k.id AS made_up_by FROM {kept}, "  # noqa: S608 constants of this module
            f"unnest({listed}) AS u(id) JOIN call c ON c.id = u.id WHERE NOT ({stood})"
        ),
    )


I33 = Invariant(
    "I33",
    "A compaction or hand-off keeps the open set: what was open before it is listed, and no more.",
    (
        *_keeps_open_set("ledger_compaction k", "k.session_id", "k.at", "k.unresolved", "<="),
        *_keeps_open_set(
            "(SELECT * FROM ledger_handoff WHERE ended_as = 'accepted') k",
            "k.from_session_id",
            "k.ended_at",
            "k.calls",
            "<",
        ),
        Check(
            "SELECT NULL::uuid AS call_id, k.id AS compaction FROM ledger_compaction k "
            "WHERE ARRAY(SELECT line ->> 'call' FROM jsonb_array_elements(k.carry_over) line) "
            "<> ARRAY(SELECT 'call_' || replace(u::text, '-', '') FROM unnest(k.unresolved) u)"
        ),
        Check(
            "SELECT c.id AS call_id, c.handed_off_id, h.id AS last FROM call c JOIN LATERAL ("
            "SELECT h.id FROM ledger_handoff h WHERE h.ended_as = 'accepted' "
            "AND c.id = ANY(h.calls) ORDER BY h.ended_at DESC LIMIT 1) h ON true "
            "WHERE h.id IS DISTINCT FROM c.handed_off_id"
        ),
        Check(
            "SELECT c.id AS call_id, c.handed_off_id FROM call c WHERE c.handed_off_id IS NOT NULL "
            "AND NOT EXISTS (SELECT FROM ledger_handoff h WHERE h.id = c.handed_off_id "
            "AND h.ended_as = 'accepted' AND c.id = ANY(h.calls))"
        ),
        Check(
            "SELECT NULL::uuid AS call_id, k.id AS compaction, k.version, s.version AS of_session "
            "FROM ledger_compaction k JOIN ledger_session s ON s.id = k.session_id "
            "WHERE k.version <> k.version_before + 1 OR k.version > s.version"
        ),
        stands(
            [
                ("ledger_compaction", "compaction_append_only"),
                ("ledger_compaction", "compaction_keeps_open_calls"),
                ("ledger_compaction", "one_compaction_a_version"),
                ("ledger_handoff", "hand_off_guard"),
                ("ledger_handoff", "one_open_hand_off"),
            ]
        ),
    ),
)

SCOPE = (I31, I32, I33, I34)
