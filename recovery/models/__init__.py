"""What recovery keeps beside the ledger: one noun a file."""

from recovery.models.incidents import Incident, Step, Sweep

__all__ = ["Incident", "Step", "Sweep"]
