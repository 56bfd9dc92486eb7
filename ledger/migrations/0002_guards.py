"""The hash of an event, and the composite keys that keep references inside a workspace."""

from django.db import migrations

from ledger import guards


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_initial")]

    operations = [
        migrations.RunSQL(guards.EVENT_HASH, migrations.RunSQL.noop),
        migrations.RunSQL(
            "CREATE SEQUENCE ledger_worker_number AS integer CYCLE",
            "DROP SEQUENCE ledger_worker_number",
        ),
        *(
            migrations.RunSQL(statement, migrations.RunSQL.noop)
            for statement in guards.same_workspace_sql()
        ),
    ]
