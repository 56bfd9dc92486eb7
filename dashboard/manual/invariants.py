"""`invariants.md`: what `manage.py verify_ledger` proves, from `ledger/verification`."""

from dashboard.manual.markdown import table
from ledger.verification import INVARIANTS, NOT_YET
from ledger.verification.shapes import Check

HEAD = """# Invariants

Each invariant is one or more queries that must return no row. `manage.py verify_ledger` asks all of
them in one statement, so that they judge one instant. It reads, and never repairs.

How to use it: [verify the ledger](../how-to/verify-the-ledger.md).
"""


def page() -> str:
    """The whole page."""
    rows = [
        (each.number, each.sentence, len(each.checks), _when(each.checks)) for each in INVARIANTS
    ]
    return "\n".join([
        HEAD, table(("", "Must hold", "Queries", "Asked"), rows),
        '"While sweeps run" marks what a stopped installation breaks without being corrupt.', "",
        "## What is not proved, or in part only", "",
        table(("", "Why"), NOT_YET.items()),
    ])  # fmt: skip


def _when(checks: tuple[Check, ...]) -> str:
    living = sum(check.liveness for check in checks)
    if living == len(checks):
        return "while sweeps run"
    return f"always; {living} of them while sweeps run" if living else "always"
