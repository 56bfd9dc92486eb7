"""What PostgreSQL does for recovery: an incident is `attempting` while a probe is claimed.

A worker claims probes by the ledger's verbs, which know nothing of incidents; said here, the state
is right in the same commit as the claim.
"""

from ledger import guards

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

SAME_WORKSPACE = guards.OF_RECOVERY
"""References that can only stay inside one workspace (I31), as in `ledger/guards.py`."""
