"""The trace that a call belongs to: a column without a default, so no row is written anew."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ledger', '0001_schema'),
    ]

    operations = [
        migrations.AddField(
            model_name='toolcall',
            name='traceparent',
            field=models.CharField(max_length=55, null=True),
        ),
        migrations.AddConstraint(
            model_name='toolcall',
            constraint=models.CheckConstraint(condition=models.Q(('traceparent__regex', '^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]$')), name='traceparent_was_read'),
        ),
    ]
