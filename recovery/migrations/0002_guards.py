"""The composite key that keeps an incident inside its call's workspace."""

from django.db import migrations

from ledger import guards

REFERENCES = (("recovery_incident", "call_id", "ledger_toolcall"),)


class Migration(migrations.Migration):
    dependencies = [("recovery", "0001_initial")]

    operations = [
        migrations.RunSQL(statement, migrations.RunSQL.noop)
        for statement in guards.same_workspace_sql(REFERENCES)
    ]
