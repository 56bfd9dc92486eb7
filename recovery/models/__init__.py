"""What recovery keeps beside the ledger: one noun a file."""

from recovery.models.asides import Aside, Assignment
from recovery.models.breakers import Breaker, BreakerChange
from recovery.models.budgets import Grant, Refusal, Repeat
from recovery.models.bulk import BulkRow, BulkRun
from recovery.models.disputes import Dispute
from recovery.models.incidents import Incident, Step, Sweep
from recovery.models.intents import PersonsIntent
from recovery.models.resolutions import (
    ENDS,
    Resolution,
    ResolutionEvent,
    ResolutionEvidence,
)
from recovery.models.takings import Taking
from recovery.models.trials import Trial

__all__ = [
    "ENDS",
    "Aside",
    "Assignment",
    "BulkRow",
    "BulkRun",
    "Dispute",
    "Incident",
    "PersonsIntent",
    "Resolution",
    "ResolutionEvent",
    "ResolutionEvidence",
    "Breaker",
    "BreakerChange",
    "Grant",
    "Incident",
    "Refusal",
    "Repeat",
    "Step",
    "Sweep",
    "Taking",
    "Trial",
]
