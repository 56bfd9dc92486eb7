"""Settling, and what is told of it: I11 to I17."""

from ledger import guards, machine
from ledger.verification.published import agrees
from ledger.verification.shapes import Check, Invariant
from ledger.verification.standing import stands
from ledger.vocabulary import SETTLED


def words(values: object) -> str:
    """Words of a vocabulary as an SQL list, in order."""
    return ", ".join(f"'{value}'" for value in sorted(map(str, values)))  # type: ignore[call-overload]


AFTER_SETTLEMENT = tuple(
    each.kind
    for each in machine.TRANSITIONS.values()
    if each.source & SETTLED and not each.target and each.effects is None
)
"""Kinds of events that may follow a settlement: they move neither the state nor the effect."""

I11 = Invariant(
    "I11",
    "Settled is final: afterwards come only events that leave state and effect alone.",
    (
        Check(
            "SELECT e.call_id, e.seq, e.kind, e.from_state, e.to_state, e.effect FROM chain e "  # noqa: S608 words of the machine
            f"WHERE e.after_settlement AND (e.kind NOT IN ({words(AFTER_SETTLEMENT)}) OR e.settles "
            "OR e.to_state <> e.was_state OR e.effect <> e.was_effect)"
        ),
    ),
)

I12 = Invariant(
    "I12",
    "A call is settled exactly when it says so by state, instant and one settling event.",
    (
        Check(
            "SELECT c.id AS call_id, c.state, c.settled_at, f.settlements FROM call c "  # noqa: S608 words of the vocabulary
            "LEFT JOIN fold f ON f.call_id = c.id "
            f"WHERE (c.state IN ({words(SETTLED)})) <> (c.settled_at IS NOT NULL) "
            "OR coalesce(f.settlements, 0) <> CASE WHEN c.settled_at IS NULL THEN 0 ELSE 1 END"
        ),
        Check(
            "SELECT e.call_id, e.seq, e.at, c.settled_at FROM chain e JOIN call c "
            "ON c.id = e.call_id WHERE e.settles AND c.settled_at <> e.at"
        ),
        Check(
            "SELECT c.id AS call_id, c.state, c.due_at FROM call c "
            "WHERE c.settled_at IS NOT NULL AND c.due_at IS NOT NULL"
        ),
        stands(
            [
                ("ledger_toolcall", "settled_says_when"),
                ("ledger_toolcall", "settled_call_has_no_deadline"),
            ]
        ),
    ),
)

I13 = Invariant(
    "I13",
    "A succeeded call has one result, of the current fence or adopted on grounds, or a statement.",
    (
        Check(
            "SELECT e.call_id, e.seq, e.kind, e.fence, e.greatest_fence FROM chain e "
            "LEFT JOIN result r ON r.call_id = e.call_id AND r.event_seq = e.seq "
            "WHERE e.settles AND e.to_state = 'succeeded' AND e.kind IN ('succeeded', 'adopted') "
            "AND (r.call_id IS NULL OR e.kind = 'succeeded' AND e.fence IS DISTINCT FROM "
            "e.greatest_fence OR e.kind = 'adopted' AND NOT (e.facts ~ '\"grounds\":\"[^\"]' "
            'AND e.facts ~ \'"evidence":"[^"]\'))'
        ),
        Check(
            "SELECT r.call_id, r.event_seq, r.fence FROM result r JOIN call c ON c.id = r.call_id "
            "WHERE NOT EXISTS (SELECT FROM chain e WHERE e.call_id = r.call_id "
            "AND e.seq = r.event_seq AND e.settles)"
        ),
        # Answered from the ledger: a twin never ran, and its result is the other's, byte for byte.
        Check(
            "SELECT c.id AS call_id, c.twin_of_id, c.fence, c.effect FROM call c "
            "WHERE c.twin_of_id IS NOT NULL AND (c.fence > 0 OR c.effect IN ('possible', "
            "'happened') OR EXISTS (SELECT FROM attempt a WHERE a.call_id = c.id) "
            "OR EXISTS (SELECT FROM ledger_toolcall o WHERE o.id = c.twin_of_id "
            "AND o.twin_of_id IS NOT NULL))"
        ),
        Check(
            "SELECT e.call_id, e.seq, c.twin_of_id FROM chain e JOIN call c ON c.id = e.call_id "
            "WHERE e.kind = 'interrupt_answered' AND e.to_state = 'succeeded' "
            "AND c.twin_of_id IS NOT NULL AND NOT EXISTS (SELECT FROM result r "
            "JOIN ledger_result o ON o.call_id = c.twin_of_id AND o.sha256 = r.sha256 "
            "WHERE r.call_id = e.call_id AND r.event_seq = e.seq)"
        ),
        # What was imported is what its file holds: the result that its event names, or none.
        Check(
            "SELECT e.call_id, e.seq, i.id AS import, e.facts, r.sha256 FROM chain e "
            "JOIN call c ON c.id = e.call_id LEFT JOIN ledger_import i "
            "ON i.session_id = c.session_id LEFT JOIN result r ON r.call_id = e.call_id "
            "AND r.event_seq = e.seq WHERE e.kind = 'imported' AND (i.id IS NULL "
            'OR substring(e.facts FROM \'"file_sha256":"([0-9a-f]{64})"\') <> i.sha256 '
            'OR substring(e.facts FROM \'"result_sha256":"([0-9a-f]{64})"\') '
            "IS DISTINCT FROM CASE WHEN e.settles THEN r.sha256 END "
            "OR e.settles <> (r.call_id IS NOT NULL) "
            "OR r.sha256 <> encode(sha256(r.body), 'hex'))"
        ),
        Check(
            "SELECT NULL::uuid AS call_id, i.id AS import, i.sha256 FROM ledger_import i "
            "WHERE i.sha256 <> encode(sha256(i.body), 'hex')"
        ),
    ),
)

I14 = Invariant(
    "I14",
    "What arrives from a lost fence is evidence, never a result.",
    (
        Check(
            "SELECT r.call_id, r.fence, e.fence AS fence_of_event, a.fence_lost_at FROM result r "
            "JOIN chain e ON e.call_id = r.call_id AND e.seq = r.event_seq "
            "AND e.kind IN ('succeeded', 'failed') "
            "LEFT JOIN attempt a ON a.call_id = r.call_id AND a.fence = r.fence "
            "WHERE e.fence IS DISTINCT FROM r.fence OR a.id IS NULL OR a.fence_lost_at <= e.at"
        ),
    ),
)

# Said again without the published table, which a wrong publication could widen.
NEVER = (
    "c.recovery_class = 'read_only' AND c.effect <> 'none' "
    "OR c.state = 'failed' AND c.effect = 'possible' "
    "OR c.state = 'rejected' AND c.effect NOT IN ('none', 'not_begun') "
    "OR c.state = 'cancelled' AND c.effect = 'possible' "
    "OR c.state = 'abandoned' AND c.effect <> 'possible' "
    "OR c.state = 'expired' AND c.recovery_class <> 'provider_auth' "
    "AND c.effect NOT IN ('none', 'not_begun', 'did_not_happen')"
)

I15 = Invariant(
    "I15",
    "State and effect agree: the allowed pairs, and no settled state that hides an open effect.",
    (
        Check(
            "SELECT c.id AS call_id, c.state, c.effect, c.recovery_class FROM call c "  # noqa: S608 a constant
            "WHERE NOT EXISTS (SELECT FROM ledger_pair p WHERE p.state = c.state "
            f"AND p.effect = c.effect AND p.recovery_class = c.recovery_class) OR {NEVER}"
        ),
        agrees("ledger_pair", ("state", "effect", "recovery_class"), guards.pair_rows),
    ),
)

I16 = Invariant(
    "I16",
    "Only a person, a probe's proof or an adopted result ends ambiguity; only a person abandons.",
    (
        Check(
            "SELECT e.call_id, e.seq, e.kind, e.actor FROM chain e JOIN call c ON c.id = e.call_id "
            "JOIN ledger_policy p ON p.id = c.policy_id "
            "WHERE e.from_state = 'ambiguous' AND e.to_state <> 'ambiguous' "
            "AND e.actor <> 'operator' AND (e.actor <> 'recovery' OR e.kind <> 'adopted' "
            "AND NOT EXISTS (SELECT FROM attempt a WHERE a.call_id = e.call_id "
            "AND a.kind = 'probe' AND a.ended_at <= e.at AND (a.finding = 'happened' "
            "AND e.effect = 'happened' OR a.finding = 'did_not_happen' "
            "AND e.effect = 'did_not_happen' "
            "AND p.document #>> '{probe,authoritative}' = 'true')))"
        ),
        Check(
            "SELECT e.call_id, e.seq, e.actor, e.actor_id FROM chain e WHERE e.kind = 'abandoned' "
            "AND (e.actor = 'operator' AND e.actor_id <> '' AND e.facts ~ '\"grounds\":\"[^\"]') "
            "IS NOT TRUE"
        ),
    ),
)

I17 = Invariant(
    "I17",
    "What a model is shown is true: the result's digest, or that of a text that stays as it was.",
    (
        Check(
            "SELECT n.call_id, n.seq, n.template FROM notice n "
            "LEFT JOIN chain e ON e.call_id = n.call_id AND e.seq = n.seq "
            "WHERE (e.settles OR e.kind = 'corrected') IS NOT TRUE "
            "OR n.sha256 <> encode(sha256(convert_to(n.text, 'UTF8')), 'hex')"
        ),
        Check(
            "SELECT c.id AS call_id, c.notice_seq FROM call c LEFT JOIN notice n "
            "ON n.call_id = c.id AND n.seq = c.notice_seq "
            "WHERE c.notice_seq IS NOT NULL AND n.call_id IS NULL"
        ),
        # The tool's own bytes: those of the result, or of the error that the call ended with, and
        # never before the settlement.
        Check(
            "SELECT d.call_id, d.id AS delivery, d.kind, d.sha256 FROM delivery d "
            "JOIN call c ON c.id = d.call_id LEFT JOIN result r ON r.call_id = d.call_id "
            "WHERE d.kind IN ('real', 'replayed') AND (c.settled_at IS NULL "
            "OR d.offered_at < c.settled_at OR CASE WHEN d.text = '' "
            "THEN d.sha256 IS DISTINCT FROM r.sha256 ELSE c.state <> 'failed' OR d.text <> c.error "
            "END)"
        ),
        Check(
            "SELECT d.call_id, d.id AS delivery, d.kind, d.template FROM delivery d "
            "WHERE (d.text <> '' OR d.template <> '') "
            "AND d.sha256 <> encode(sha256(convert_to(d.text, 'UTF8')), 'hex') "
            "OR (d.kind IN ('real', 'replayed')) <> (d.template = '')"
        ),
        # State and effect are those of the event that was shown.
        Check(
            "SELECT d.call_id, d.id AS delivery, d.event_seq FROM delivery d LEFT JOIN chain e "
            "ON e.call_id = d.call_id AND e.seq = d.event_seq "
            "WHERE (e.to_state = d.state AND e.effect = d.effect AND e.at <= d.offered_at) "
            "IS NOT TRUE"
        ),
        stands([("ledger_delivery", "delivery_guard"), ("ledger_offer", "offer_guard")]),
    ),
)

SETTLING = (I11, I12, I13, I14, I15, I16, I17)
