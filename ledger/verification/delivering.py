"""Delivering: I35. That what is shown is true is I17."""

from ledger.verification.settling import words
from ledger.verification.shapes import Check, Invariant
from ledger.verification.standing import stands
from ledger.vocabulary import SETTLED

I35 = Invariant(
    "I35",
    "What is confirmed is not offered again; an offer is confirmed as a whole and dates its calls.",
    (
        Check(
            "SELECT d.call_id, d.id AS delivery, o.acknowledged_at FROM delivery d "
            "JOIN ledger_offer o ON o.id = d.offer_id "
            "WHERE d.acknowledged_at IS DISTINCT FROM o.acknowledged_at "
            "OR d.consumer <> o.consumer OR d.turn_id <> o.turn_id"
        ),
        Check(
            "SELECT d.call_id, d.id AS delivery, a.id AS confirmed FROM delivery d "
            "JOIN delivery a ON a.call_id = d.call_id AND a.consumer = d.consumer "
            "AND a.sha256 = d.sha256 AND a.acknowledged_at < d.offered_at"
        ),
        Check(
            "SELECT DISTINCT d.call_id, c.delivered_at FROM delivery d "  # noqa: S608 words of the vocabulary
            "JOIN call c ON c.id = d.call_id WHERE d.acknowledged_at IS NOT NULL "
            f"AND d.state IN ({words(SETTLED)}) AND c.delivered_at IS NULL"
        ),
        Check(
            "SELECT c.id AS call_id, t.session_id AS session_of_turn FROM delivery d "
            "JOIN call c ON c.id = d.call_id JOIN ledger_turn t ON t.id = d.turn_id "
            "JOIN ledger_offer o ON o.id = d.offer_id WHERE t.session_id <> o.session_id"
        ),
        stands([("ledger_delivery", "delivery_once_each")]),
    ),
)
