"""What PostgreSQL does for recovery: an incident is `attempting` while a probe is claimed.

A worker claims probes by the ledger's verbs, which know nothing of incidents; said here, the state
is right in the same commit as the claim.
"""

ATTEMPTING = """
CREATE OR REPLACE FUNCTION recovery_incident_attempting() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE recovery_incident SET state = 'attempting'
   WHERE call_id = NEW.call_id AND kind = 'recovery' AND closed_at IS NULL
     AND state IN ('detected', 'scheduled');
  RETURN NULL;
END $$;
CREATE TRIGGER recovery_incident_attempting AFTER INSERT ON ledger_attempt
  FOR EACH ROW WHEN (NEW.kind = 'probe') EXECUTE FUNCTION recovery_incident_attempting()
"""
NOT_ATTEMPTING = """
DROP TRIGGER recovery_incident_attempting ON ledger_attempt;
DROP FUNCTION recovery_incident_attempting()
"""

SAME_WORKSPACE = (
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
"""References that can only stay inside one workspace (I31), as in `ledger/guards.py`."""
