"""What an invariant is: a number, a sentence, and the queries that would show it broken."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One query over the words of `terms` that returns the offending rows, none where all is well.

    Each row has a `call_id`, NULL where the offence belongs to no call. `liveness` marks a query
    that holds only while sweeps run: a stopped installation breaks it without being corrupt.
    """

    sql: str
    liveness: bool = False


@dataclass(frozen=True, slots=True)
class Invariant:
    """A promise of the ledger, by its number (reliability, section 3)."""

    number: str
    sentence: str
    checks: tuple[Check, ...]
