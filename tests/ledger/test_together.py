"""The folded migrations: they make what the models say, and ask nothing of older installations."""

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

pytestmark = pytest.mark.django_db
OURS = ("ledger", "recovery", "dashboard")


def test_the_migrations_make_the_tables_that_the_models_say() -> None:
    loader = MigrationLoader(connection)
    found = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps))
    assert found.changes(graph=loader.graph) == {}


@pytest.mark.parametrize("label", OURS)
def test_an_installation_with_all_former_migrations_has_nothing_to_do(label: str) -> None:
    recorder = MigrationRecorder(connection)
    folded = MigrationLoader(connection).disk_migrations[label, "0001_schema"]
    recorder.record_unapplied(label, "0001_schema")
    for former in folded.replaces:
        recorder.record_applied(*former)
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_no_migration_unmakes_the_ledger() -> None:
    loader = MigrationLoader(connection)
    first = loader.disk_migrations["ledger", "0001_schema"]
    with connection.schema_editor(atomic=False) as editor, pytest.raises(IrreversibleError):
        first.unapply(loader.project_state(("ledger", "0001_schema"), at_end=False), editor)
