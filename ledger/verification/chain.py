"""Events: I19 to I23."""

from ledger import guards
from ledger.verification.published import agrees
from ledger.verification.shapes import Check, Invariant
from ledger.verification.standing import stands

APPEND_ONLY = (
    ("ledger_event", "event_append_only"),
    ("ledger_result", "result_append_only"),
    ("ledger_evidence", "evidence_append_only"),
    ("ledger_policy", "policy_append_only"),
    ("ledger_toolversion", "tool_version_append_only"),
    ("ledger_notice", "notice_append_only"),
    ("recovery_step", "step_append_only"),
    ("recovery_resolution", "resolution_append_only"),
    ("recovery_resolutionevent", "resolution_event_append_only"),
    ("recovery_resolutionevidence", "resolution_evidence_append_only"),
    ("recovery_personsintent", "persons_intent_append_only"),
    ("recovery_repeat", "repeat_append_only"),
    ("recovery_refusal", "refusal_append_only"),
    ("recovery_grant", "grant_append_only"),
    ("recovery_breakerchange", "breaker_change_append_only"),
    ("ledger_switch", "switch_append_only"),
    ("ledger_import", "import_as_received"),
    ("ledger_import", "import_stays"),
    ("ledger_event", "event_guard"),
    ("ledger_toolcall", "call_guard"),
    ("ledger_toolcall", "call_stays"),
)

I19 = Invariant(
    "I19",
    "One change, one event: numbered without gaps, and replaying them gives the call's state.",
    (
        Check(
            "SELECT c.id AS call_id, c.seq, f.events, f.last_seq FROM call c "
            "LEFT JOIN fold f ON f.call_id = c.id WHERE f.events IS DISTINCT FROM c.seq "
            "OR f.last_seq IS DISTINCT FROM c.seq"
        ),
        Check(
            "SELECT c.id AS call_id, c.state, e.to_state, c.effect, e.effect AS effect_of_event "
            "FROM call c JOIN chain e ON e.call_id = c.id AND e.seq = c.seq "
            "WHERE c.state <> e.to_state OR c.effect <> e.effect"
        ),
        Check(
            "SELECT e.call_id, e.seq, e.kind, e.was_seq, e.from_state, e.was_state FROM chain e "
            "WHERE e.seq <> e.was_seq + 1 OR e.from_state <> e.was_state"
        ),
    ),
)

I20 = Invariant(
    "I20",
    "Legal edges only: each event is one that the published machine has, effect included.",
    (
        Check(
            "SELECT e.call_id, e.seq, e.kind, e.from_state, e.to_state, e.actor, e.effect, "
            "e.was_effect FROM chain e LEFT JOIN ledger_publishedtransition t ON t.kind = e.kind "
            "AND t.source = e.from_state AND t.target = e.to_state AND t.actor = e.actor "
            "WHERE t.kind IS NULL OR t.settles <> e.settles "
            "OR t.effects IS NULL AND e.effect <> coalesce(e.was_effect, e.effect) "
            "OR t.effects IS NOT NULL AND NOT e.effect = ANY (t.effects)"
        ),
        agrees(
            "ledger_publishedtransition",
            ("kind", "source", "target", "actor", "effects", "settles"),
            guards.transition_rows,
        ),
    ),
)

I21 = Invariant(
    "I21",
    "The chain holds: each event is hashed over the one before, the call carries the last hash.",
    (
        Check("SELECT e.call_id, e.seq, e.kind FROM chain e WHERE e.link_is_broken"),
        Check(
            "SELECT e.call_id, e.seq, e.kind, e.hash, e.hash_again FROM event e "
            "WHERE e.hash IS DISTINCT FROM e.hash_again"
        ),
        Check(
            "SELECT c.id AS call_id, c.seq, c.head_hash, e.hash FROM call c "
            "JOIN event e ON e.call_id = c.id AND e.seq = c.seq WHERE c.head_hash <> e.hash"
        ),
    ),
)

I22 = Invariant(
    "I22",
    "Append only: the triggers that refuse edits, deletions and unguarded changes are in force.",
    (stands(APPEND_ONLY),),
)

I23 = Invariant(
    "I23",
    "Time is database time: it never falls from one event of a call to the next.",
    (Check("SELECT e.call_id, e.seq, e.kind, e.at, e.was_at FROM chain e WHERE e.at < e.was_at"),),
)

CHAIN = (I19, I20, I21, I22, I23)
