"""Publishes the machine to PostgreSQL, so that the triggers refuse what the machine does not know.

`publish` runs after every migration: the tables `ledger_publishedtransition` and `ledger_pair`
are rewritten from `ledger/machine.py`, which stays the one place where an edge is said.
"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from ledger import machine
from ledger.models import Pair, PublishedTransition
from ledger.vocabulary import SETTLED, CallState, Effect, RecoveryClass

EVENT_HASH = """
CREATE OR REPLACE FUNCTION ledger_event_hash(e ledger_event) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT sha256(e.prev_hash || convert_to(concat_ws(E'\\x1f',
    e.call_id, e.seq, e.kind, e.from_state, e.to_state, e.effect, e.actor, e.actor_id,
    to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'),
    coalesce(e.fence::text, ''),
    coalesce(to_char(e.lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), ''),
    e.cause, e.facts), 'UTF8'))
$$
"""
"""The hash of an event over the previous hash and its canonical content (I21)."""

SAME_WORKSPACE = (
    ("ledger_toolcall", "agent_id", "ledger_agent"),
    ("ledger_toolcall", "session_id", "ledger_session"),
    ("ledger_toolcall", "turn_id", "ledger_turn"),
    ("ledger_toolcall", "tool_version_id", "ledger_toolversion"),
    ("ledger_toolcall", "policy_id", "ledger_policy"),
    ("ledger_event", "call_id", "ledger_toolcall"),
    ("ledger_attempt", "call_id", "ledger_toolcall"),
    ("ledger_result", "call_id", "ledger_toolcall"),
    ("ledger_evidence", "call_id", "ledger_toolcall"),
    ("ledger_handle", "call_id", "ledger_toolcall"),
    ("ledger_fetch", "call_id", "ledger_toolcall"),
    ("ledger_notice", "call_id", "ledger_toolcall"),
    ("ledger_interrupt", "call_id", "ledger_toolcall"),
    ("ledger_turn", "session_id", "ledger_session"),
    ("ledger_session", "agent_id", "ledger_agent"),
    ("ledger_sessionchange", "session_id", "ledger_session"),
    ("ledger_toolversion", "tool_id", "ledger_tool"),
    ("ledger_policy", "tool_id", "ledger_tool"),
    ("ledger_switch", "tool_id", "ledger_tool"),
    ("ledger_gate", "trial_call_id", "ledger_toolcall"),
    ("ledger_apikey", "agent_id", "ledger_agent"),
    ("ledger_import", "agent_id", "ledger_agent"),
    ("ledger_import", "session_id", "ledger_session"),
    ("ledger_offer", "session_id", "ledger_session"),
    ("ledger_offer", "turn_id", "ledger_turn"),
    ("ledger_delivery", "offer_id", "ledger_offer"),
    ("ledger_delivery", "call_id", "ledger_toolcall"),
    ("ledger_delivery", "turn_id", "ledger_turn"),
)
"""References that can only stay inside one workspace: composite keys, checked at commit (I31).

The first migration makes them; a later table's migration adds its own with `same_workspace_sql`.
"""
OF_RECOVERY = (
    ("recovery_incident", "call_id", "ledger_toolcall"),
    ("recovery_incident", "pending_id", "recovery_resolution"),
    ("recovery_taking", "incident_id", "recovery_incident"),
    ("recovery_aside", "incident_id", "recovery_incident"),
    ("recovery_assignment", "incident_id", "recovery_incident"),
    ("recovery_resolution", "call_id", "ledger_toolcall"),
    ("recovery_resolution", "incident_id", "recovery_incident"),
    ("recovery_resolutionevent", "resolution_id", "recovery_resolution"),
    ("recovery_dispute", "call_id", "ledger_toolcall"),
    ("recovery_dispute", "incident_id", "recovery_incident"),
    ("recovery_dispute", "resolution_id", "recovery_resolution"),
    ("recovery_bulkrow", "call_id", "ledger_toolcall"),
    ("recovery_bulkrow", "incident_id", "recovery_incident"),
    ("recovery_repeat", "call_id", "ledger_toolcall"),
    ("recovery_repeat", "turn_id", "ledger_turn"),
    ("recovery_repeat", "session_id", "ledger_session"),
    ("recovery_refusal", "call_id", "ledger_toolcall"),
    ("recovery_grant", "call_id", "ledger_toolcall"),
    ("recovery_grant", "turn_id", "ledger_turn"),
    ("recovery_grant", "session_id", "ledger_session"),
    ("recovery_breakerchange", "breaker_id", "recovery_breaker"),
    ("recovery_trial", "tool_id", "ledger_tool"),
)
"""The same of the layer above, which makes these keys; verification asks for them too."""


def same_workspace_sql(references: Sequence[tuple[str, str, str]]) -> list[str]:
    """The statements that add the composite keys of (table, column, target)."""
    return [
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_ws "
        f"FOREIGN KEY (workspace_id, {column}) REFERENCES {target} (workspace_id, id) "
        "DEFERRABLE INITIALLY DEFERRED"
        for table, column, target in references
    ]


def transition_rows() -> list[PublishedTransition]:
    """One row for each edge and actor of the machine."""
    return [
        PublishedTransition(
            kind=each.kind,
            source=source,
            target=target,
            actor=str(actor),
            effects=None if each.effects is None else sorted(each.effects),
            settles=target in SETTLED and source not in SETTLED,
        )
        for each in machine.TRANSITIONS.values()
        for source, target in each.edges()
        for actor in sorted(each.by)
    ]


def pair_rows() -> list[Pair]:
    """One row for each allowed state, effect and recovery class."""
    return [
        Pair(state=state, effect=effect, recovery_class=recovery_class)
        for state in CallState
        for effect in Effect
        for recovery_class in RecoveryClass
        if machine.pair_is_allowed(state, effect, recovery_class)
    ]


def publish(**_: Any) -> None:
    """Rewrite both tables from the machine, in one transaction."""
    with transaction.atomic():
        PublishedTransition.objects.all().delete()
        PublishedTransition.objects.bulk_create(transition_rows())
        Pair.objects.all().delete()
        Pair.objects.bulk_create(pair_rows())
