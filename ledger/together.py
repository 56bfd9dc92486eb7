"""A first migration's operations done together: its models are drawn once, not at every step.

Django draws all models anew before each operation, because an operation may need the state that
lies between; tables that are made whole, with their indices and constraints, need none. Seventy
tables and their triggers take 2 s instead of 17 (`docs/decisions/0033-tables-made-together.md`).
"""

from typing import Any

from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class Together(Operation):
    """Several operations, each of which sees the state that all of them lead to.

    It cannot be undone: a ledger is not unmade by a migration.
    """

    reversible = False

    def __init__(self, *operations: Operation) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)  # what was drawn; the state draws itself when asked
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for operation in self.operations:
            operation.database_forwards(app_label, schema_editor, to_state, to_state)

    def describe(self) -> str:
        return f"{len(self.operations)} operations together"
