import django.contrib.postgres.fields
import django.db.models.deletion
import ledger.ids
import ledger.models.fields
import notifications.vocabulary
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from ledger import guards
from ledger.together import Together

REFERENCES = (
    ("notifications_message", "channel_id", "notifications_channel"),
    ("notifications_line", "channel_id", "notifications_channel"),
    ("notifications_line", "occurrence_id", "notifications_occurrence"),
    ("notifications_line", "message_id", "notifications_message"),
    ("notifications_delivery", "message_id", "notifications_message"),
    ("notifications_channelchange", "channel_id", "notifications_channel"),
)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('ledger', '0001_schema'),
    ]

    operations = [
        Together(
            migrations.CreateModel(
                name='Channel',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('kind', models.CharField(max_length=10)),
                    ('name', models.CharField(max_length=100)),
                    ('target', models.BinaryField()),
                    ('shown', models.CharField(max_length=400)),
                    ('may_be_local', models.BooleanField(default=False)),
                    ('secret', models.BinaryField(null=True)),
                    ('old_secret', models.BinaryField(null=True)),
                    ('old_secret_until', models.DateTimeField(blank=True, null=True)),
                    ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=30), size=None)),
                    ('tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=128), default=list, size=None)),
                    ('classes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), default=list, size=None)),
                    ('least_age_s', models.FloatField(default=0.0)),
                    ('quiet_from', models.TimeField(null=True)),
                    ('quiet_to', models.TimeField(null=True)),
                    ('zone', models.CharField(blank=True, max_length=64)),
                    ('is_on', models.BooleanField(default=True)),
                    ('made_at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('taken_at', models.DateTimeField(blank=True, null=True)),
                    ('disabled_at', models.DateTimeField(blank=True, null=True)),
                    ('disabled_why', models.CharField(blank=True, max_length=300)),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'name'), name='channel_name'), models.UniqueConstraint(fields=('workspace', 'id'), name='channel_in_workspace'), models.CheckConstraint(condition=models.Q(models.Q(('quiet_from__isnull', True), ('quiet_to__isnull', True)), models.Q(('quiet_from__isnull', False), ('quiet_to__isnull', False)), _connector='OR'), name='channel_has_both_quiet_hours_or_none')],
                },
            ),
            migrations.CreateModel(
                name='ChannelChange',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('what', models.CharField(choices=[('made', 'made'), ('changed', 'changed'), ('secret_renewed', 'secret_renewed'), ('switched_on', 'switched_on'), ('switched_off', 'switched_off'), ('tested', 'tested'), ('resent', 'resent')], max_length=20)),
                    ('about', models.CharField(max_length=100)),
                    ('after', models.CharField(blank=True, max_length=1000)),
                    ('grounds', models.CharField(max_length=500)),
                    ('by_name', models.CharField(max_length=200)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('by', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='changes', to='notifications.channel')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'indexes': [models.Index(fields=['workspace', '-id'], name='channel_change_newest')],
                },
            ),
            migrations.CreateModel(
                name='Message',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('event', models.CharField(max_length=30)),
                    ('thread', models.CharField(max_length=300)),
                    ('title', models.CharField(max_length=300)),
                    ('body', models.TextField()),
                    ('lines_count', models.IntegerField(default=1)),
                    ('state', models.CharField(default=notifications.vocabulary.MessageState['WAITING'], max_length=10)),
                    ('tries', models.IntegerField(default=0)),
                    ('is_asked', models.BooleanField(default=False)),
                    ('made_at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('next_try_at', models.DateTimeField(blank=True, null=True)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='messages', to='notifications.channel')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['channel', 'next_try_at'], name='message_to_try'), models.Index(fields=['channel', '-made_at'], name='message_newest')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='message_in_workspace_told'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('next_try_at__isnull', False), ('state', 'waiting')), models.Q(models.Q(('state', 'waiting'), _negated=True), ('ended_at__isnull', False), ('next_try_at__isnull', True)), _connector='OR'), name='message_waits_for_a_try')],
                },
            ),
            migrations.CreateModel(
                name='Delivery',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.IntegerField()),
                    ('began_at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('was_taken', models.BooleanField(default=False)),
                    ('status', models.IntegerField(null=True)),
                    ('answer', models.TextField(blank=True)),
                    ('error', models.CharField(blank=True, max_length=500)),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                    ('message', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='notifications.message')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('message', 'number'), name='delivery_number')],
                },
            ),
            migrations.CreateModel(
                name='Occurrence',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('event', models.CharField(max_length=30)),
                    ('key', models.CharField(max_length=300)),
                    ('thread', models.CharField(max_length=300)),
                    ('subject', models.CharField(blank=True, max_length=300)),
                    ('tool', models.CharField(blank=True, max_length=128)),
                    ('recovery_class', models.CharField(blank=True, max_length=20)),
                    ('facts', models.JSONField(default=dict)),
                    ('since', models.DateTimeField()),
                    ('is_open', models.BooleanField(default=False)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp(), db_index=True)),
                    ('routed_at', models.DateTimeField(blank=True, null=True)),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('routed_at__isnull', True)), fields=['id'], name='occurrence_to_route'), models.Index(condition=models.Q(('is_open', True)), fields=['subject'], name='occurrence_open'), models.Index(fields=['workspace', 'thread'], name='occurrence_thread')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'key'), name='occurrence_once'), models.UniqueConstraint(fields=('workspace', 'id'), name='occurrence_in_workspace')],
                },
            ),
            migrations.CreateModel(
                name='Line',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('due_at', models.DateTimeField()),
                    ('dropped', models.CharField(blank=True, max_length=10)),
                    ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='notifications.channel')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                    ('message', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='notifications.message')),
                    ('occurrence', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='lines', to='notifications.occurrence')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('dropped', ''), ('message__isnull', True)), fields=['channel', 'due_at'], name='line_to_tell')],
                    'constraints': [models.UniqueConstraint(fields=('channel', 'occurrence'), name='line_once')],
                },
            ),
        ),
        Together(
            pgtrigger.migrations.AddTrigger(
                model_name='channelchange',
                trigger=pgtrigger.compiler.Trigger(name='channel_change_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='967316880f38267eb89663b1c18b65a52354a536', operation='UPDATE OR DELETE', pgid='pgtrigger_channel_change_append_only_91c93', table='notifications_channelchange', when='BEFORE')),
            ),
        ),
        *(
            migrations.RunSQL(statement, migrations.RunSQL.noop)
            for statement in guards.same_workspace_sql(REFERENCES)
        ),
    ]
