"""Whether PostgreSQL's own guards stand: constraints, unique indexes, triggers.

A guard that was dropped, disabled or never validated has let through nothing yet, perhaps; but
from then on an invariant holds by luck. The schema is asked through `standing`, see `terms`.
"""

from collections.abc import Iterable

from ledger.verification.shapes import Check


def stands(guards: Iterable[tuple[str, str]]) -> Check:
    """A check that each guard, given as table and name, exists and is in force.

    A trigger is named as its model names it; its full name goes on with a digest.
    """
    rows = ", ".join(f"('{table}', '{name}')" for table, name in guards)
    return Check(
        "SELECT NULL::uuid AS call_id, w.tbl AS on_table, w.name AS missing_or_disabled "  # noqa: S608 constants of this package
        f"FROM (VALUES {rows}) AS w(tbl, name) WHERE NOT EXISTS "
        "(SELECT FROM standing s WHERE s.tbl = w.tbl AND s.name = w.name)"
    )
