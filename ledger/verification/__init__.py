"""Proves the ledger: every invariant is a query that must return no row.

The invariants are data (`effects`, `settling`, `delivering`, `deciding`, `chain`, `bounds`,
`scope`), written in the words of `terms` and run in one statement, so that all of them judge one
instant. Nothing here writes, locks or repairs: a violation is a fact for a person, and the ledger
is left as it was found.
"""

from ledger.verification.invariants import INVARIANTS, NOT_YET
from ledger.verification.shapes import Invariant
from ledger.verification.verifying import Extent, Violation, extent, verify

__all__ = ["INVARIANTS", "NOT_YET", "Extent", "Invariant", "Violation", "extent", "verify"]
