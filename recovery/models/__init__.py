"""What recovery keeps beside the ledger: one noun a file."""

from recovery.models.breakers import Breaker, BreakerChange
from recovery.models.budgets import Grant, Refusal, Repeat
from recovery.models.incidents import Incident, Step, Sweep

__all__ = [
    "Breaker",
    "BreakerChange",
    "Grant",
    "Incident",
    "Refusal",
    "Repeat",
    "Step",
    "Sweep",
]
