"""Recovery's tables, what PostgreSQL does for them, and the keys of their workspaces."""

import django.contrib.postgres.fields
import django.db.models.deletion
import ledger.ids
import ledger.models.fields
import ledger.vocabulary
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from ledger.guards import same_workspace_sql
from ledger.together import Together
from recovery import guards


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('recovery', '0001_initial'),
        ('recovery', '0002_guards'),
        ('recovery', '0003_ladder'),
        ('recovery', '0004_resolutions'),
        ('recovery', '0005_budgets'),
        ('recovery', '0006_session_incidents'),
        ('recovery', '0007_imports'),
        ('recovery', '0008_takings'),
        ('recovery', '0009_trials'),
        ('recovery', '0010_asides'),
        ('recovery', '0011_disputes'),
        ('recovery', '0012_bulk_previews'),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('ledger', '0001_schema'),
    ]

    operations = [
        Together(
            migrations.CreateModel(
                name='Incident',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('subject', models.CharField(blank=True, max_length=64)),
                    ('kind', models.CharField(max_length=20)),
                    ('number', models.IntegerField(default=1)),
                    ('state', models.CharField(max_length=20)),
                    ('cause', models.CharField(blank=True, max_length=40)),
                    ('failure_point', models.CharField(blank=True, max_length=40)),
                    ('reason', models.CharField(blank=True, max_length=40)),
                    ('facts', models.JSONField(default=dict)),
                    ('steps_taken', models.IntegerField(default=0)),
                    ('pending_until', models.DateTimeField(blank=True, null=True)),
                    ('steps_without_progress', models.IntegerField(default=0)),
                    ('progress_at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('escalation_level', models.IntegerField(default=0)),
                    ('remind_at', models.DateTimeField(blank=True, null=True)),
                    ('review_at', models.DateTimeField(blank=True, null=True)),
                    ('opened_at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('closed_at', models.DateTimeField(blank=True, null=True)),
                    ('call', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='incidents', to='ledger.toolcall')),
                    ('root', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='recovery.incident')),
                    ('session', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='incidents', to='ledger.session')),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='incidents', to='ledger.workspace')),
                    ('pending', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='recovery.resolution')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('closed_at__isnull', True)), fields=['remind_at'], name='incident_to_remind'), models.Index(condition=models.Q(('closed_at__isnull', True)), fields=['workspace', 'opened_at'], name='incident_open'), models.Index(condition=models.Q(('pending_until__isnull', False)), fields=['pending_until'], name='incident_pending')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('closed_at__isnull', True), ('kind', 'recovery')), fields=('call',), name='one_open_recovery_incident'), models.UniqueConstraint(fields=('call', 'kind', 'number'), name='incident_number'), models.UniqueConstraint(condition=models.Q(('closed_at__isnull', True), ('session__isnull', False)), fields=('session', 'kind', 'subject'), name='one_open_incident_of_session'), models.CheckConstraint(condition=models.Q(models.Q(('call__isnull', False), ('session__isnull', True), ('subject', '')), models.Q(('call__isnull', True), ('session__isnull', False)), _connector='OR'), name='incident_is_of_call_or_session'), models.UniqueConstraint(fields=('workspace', 'id'), name='incident_in_workspace'), models.CheckConstraint(condition=models.Q(models.Q(('pending__isnull', True), ('pending_until__isnull', True)), models.Q(('pending__isnull', False), ('pending_until__isnull', False)), _connector='OR'), name='pending_has_its_date'), models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', False), ('state__in', [ledger.vocabulary.IncidentState['COMPLETED'], ledger.vocabulary.IncidentState['RESOLVED'], ledger.vocabulary.IncidentState['SKIPPED']])), models.Q(('closed_at__isnull', True), models.Q(('state__in', [ledger.vocabulary.IncidentState['COMPLETED'], ledger.vocabulary.IncidentState['RESOLVED'], ledger.vocabulary.IncidentState['SKIPPED']]), _negated=True)), _connector='OR'), name='incident_state_says_closed')],
                },
            ),
            migrations.CreateModel(
                name='Sweep',
                fields=[
                    ('name', models.CharField(max_length=200, primary_key=True, serialize=False)),
                    ('swept_at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                ],
            ),
            migrations.CreateModel(
                name='Breaker',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('kind', models.CharField(max_length=10)),
                    ('name', models.CharField(max_length=255)),
                    ('state', models.CharField(default=ledger.vocabulary.BreakerState['CLOSED'], max_length=10)),
                    ('since', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('openings', models.IntegerField(default=0)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'kind', 'name'), name='breaker_once'), models.UniqueConstraint(fields=('workspace', 'id'), name='breaker_in_workspace')],
                },
            ),
            migrations.CreateModel(
                name='BreakerChange',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('source', models.CharField(max_length=10)),
                    ('target', models.CharField(max_length=10)),
                    ('rule', models.CharField(blank=True, max_length=60)),
                    ('person_name', models.CharField(blank=True, max_length=200)),
                    ('grounds', models.TextField()),
                    ('figures', models.JSONField(default=dict)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('breaker', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='changes', to='recovery.breaker')),
                    ('person', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
            ),
            migrations.CreateModel(
                name='BulkRun',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('answer', models.CharField(max_length=20)),
                    ('then', models.CharField(blank=True, max_length=10)),
                    ('grounds', models.TextField()),
                    ('level', models.IntegerField()),
                    ('by_name', models.CharField(max_length=200)),
                    ('login_age_s', models.FloatField(default=0.0)),
                    ('frozen_at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('expires_at', models.DateTimeField()),
                    ('started_at', models.DateTimeField(blank=True, null=True)),
                    ('stopped_at', models.DateTimeField(blank=True, null=True)),
                    ('finished_at', models.DateTimeField(blank=True, null=True)),
                    ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('finished_at__isnull', True), ('started_at__isnull', False)), fields=['started_at'], name='bulk_run_under_way')],
                },
            ),
            migrations.CreateModel(
                name='BulkRow',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('place', models.IntegerField()),
                    ('decision_version', models.IntegerField()),
                    ('evidence_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                    ('eligibility', models.CharField(max_length=20)),
                    ('detail', models.TextField(blank=True)),
                    ('told', models.TextField(blank=True)),
                    ('size_bytes', models.IntegerField(default=0)),
                    ('outcome', models.CharField(blank=True, max_length=20)),
                    ('done_at', models.DateTimeField(blank=True, null=True)),
                    ('call', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.toolcall')),
                    ('incident', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='recovery.incident')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='rows', to='recovery.bulkrun')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('run', 'incident'), name='incident_once_in_run')],
                },
            ),
            migrations.CreateModel(
                name='Grant',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('scope', models.CharField(max_length=10)),
                    ('tool', models.CharField(blank=True, max_length=128)),
                    ('attempts', models.IntegerField(default=0)),
                    ('seconds', models.FloatField(default=0.0)),
                    ('person_name', models.CharField(max_length=200)),
                    ('grounds', models.TextField()),
                    ('key', models.CharField(blank=True, max_length=255)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('until', models.DateTimeField(blank=True, null=True)),
                    ('call', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='grants', to='ledger.toolcall')),
                    ('person', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('session', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.session')),
                    ('turn', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.turn')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('tool', ''), _negated=True), fields=['workspace', 'tool', 'at'], name='grant_of_tool')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('key', ''), _negated=True), fields=('person', 'key'), name='grant_key_once'), models.CheckConstraint(condition=models.Q(models.Q(('call__isnull', False), ('scope', 'call'), ('session', None), ('tool', ''), ('turn', None)), models.Q(('call', None), ('scope', 'turn'), ('session', None), ('tool', ''), ('turn__isnull', False)), models.Q(('call', None), ('scope', 'session'), ('session__isnull', False), ('tool', ''), ('turn', None)), models.Q(('call', None), ('scope', 'tool'), ('session', None), ('turn', None), models.Q(('tool', ''), _negated=True)), _connector='OR'), name='grant_names_its_scope'), models.CheckConstraint(condition=models.Q(('attempts__gte', 0), ('seconds__gte', 0), models.Q(('attempts__gt', 0), ('seconds__gt', 0), _connector='OR')), name='grant_adds_something')],
                },
            ),
            migrations.CreateModel(
                name='PersonsIntent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('address', models.CharField(max_length=300)),
                    ('key', models.CharField(max_length=255)),
                    ('body_sha256', models.CharField(max_length=64)),
                    ('status', models.IntegerField()),
                    ('answer', models.TextField()),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('person', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'person', 'address', 'key'), name='persons_intent_once')],
                },
            ),
            migrations.CreateModel(
                name='Refusal',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('tool', models.CharField(max_length=128)),
                    ('scope', models.CharField(max_length=10)),
                    ('grounds', models.TextField()),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('call', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='refusals', to='ledger.toolcall')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'indexes': [models.Index(fields=['workspace', 'tool', 'at'], name='refusal_of_tool')],
                },
            ),
            migrations.CreateModel(
                name='Repeat',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('tool', models.CharField(max_length=128)),
                    ('number', models.IntegerField()),
                    ('rule', models.CharField(max_length=60)),
                    ('cause', models.CharField(blank=True, max_length=40)),
                    ('grounds', models.TextField()),
                    ('wait_s', models.FloatField()),
                    ('call_left', models.IntegerField()),
                    ('turn_left', models.IntegerField(null=True)),
                    ('session_left', models.IntegerField(null=True)),
                    ('tool_left', models.IntegerField()),
                    ('granted_by_name', models.CharField(blank=True, max_length=200)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('call', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='repeats', to='ledger.toolcall')),
                    ('granted_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('session', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.session')),
                    ('turn', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.turn')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('turn__isnull', False)), fields=['turn'], name='repeat_of_turn'), models.Index(condition=models.Q(('session__isnull', False)), fields=['session', 'at'], name='repeat_of_session'), models.Index(fields=['workspace', 'tool', 'at'], name='repeat_of_tool')],
                    'constraints': [models.UniqueConstraint(fields=('call', 'number'), name='repeat_once'), models.CheckConstraint(condition=models.Q(('number__gte', 1), ('wait_s__gte', 0)), name='repeat_has_a_number')],
                },
            ),
            migrations.CreateModel(
                name='Resolution',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('answer', models.CharField(max_length=20)),
                    ('then', models.CharField(blank=True, max_length=10)),
                    ('error', models.TextField(blank=True)),
                    ('handle_kind', models.CharField(blank=True, max_length=20)),
                    ('handle_endpoint', models.TextField(blank=True)),
                    ('handle_encrypted', models.BinaryField(null=True)),
                    ('grounds', models.TextField()),
                    ('decision_version', models.IntegerField()),
                    ('level', models.IntegerField()),
                    ('by_name', models.CharField(max_length=200)),
                    ('by_roles', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), size=None)),
                    ('login_age_s', models.FloatField()),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('carry_out_after_s', models.FloatField()),
                    ('needs_second_person', models.BooleanField(default=False)),
                    ('is_correction', models.BooleanField(default=False)),
                    ('template', models.CharField(blank=True, max_length=40)),
                    ('template_version', models.IntegerField(default=0)),
                    ('attempt', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.attempt')),
                    ('bulk_row', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='recovery.bulkrow')),
                    ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('call', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='resolutions', to='ledger.toolcall')),
                    ('incident', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='resolutions', to='recovery.incident')),
                    ('result', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.evidence')),
                    ('supersedes', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='superseded_by', to='recovery.resolution')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                    ('evidence', models.ManyToManyField(related_name='+', through='recovery.ResolutionEvidence', to='ledger.evidence')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='resolution_in_workspace'), models.CheckConstraint(condition=models.Q(models.Q(('grounds', ''), _negated=True), models.Q(('by_name', ''), _negated=True)), name='resolution_has_grounds')],
                },
            ),
            migrations.CreateModel(
                name='Dispute',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('answer', models.CharField(max_length=20)),
                    ('then', models.CharField(blank=True, max_length=10)),
                    ('grounds', models.TextField()),
                    ('by_name', models.CharField(max_length=200)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('call', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='disputes', to='ledger.toolcall')),
                    ('incident', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='disputes', to='recovery.incident')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                    ('decision', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='recovery.resolution')),
                    ('resolution', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='dispute', to='recovery.resolution')),
                ],
            ),
            migrations.CreateModel(
                name='ResolutionEvent',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('kind', models.CharField(max_length=20)),
                    ('by_name', models.CharField(blank=True, max_length=200)),
                    ('grounds', models.TextField(blank=True)),
                    ('event_seq', models.IntegerField(null=True)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('resolution', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='events', to='recovery.resolution')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(('kind__in', ['declined', 'taken_back', 'lapsed', 'overtaken', 'carried_out'])), fields=('resolution',), name='resolution_ends_once')],
                },
            ),
            migrations.CreateModel(
                name='ResolutionEvidence',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('evidence', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.evidence')),
                    ('resolution', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='backing', to='recovery.resolution')),
                ],
            ),
            migrations.CreateModel(
                name='Step',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('rung', models.CharField(max_length=40)),
                    ('taken', models.BooleanField()),
                    ('rule', models.CharField(blank=True, max_length=60)),
                    ('policy_version', models.PositiveIntegerField(null=True)),
                    ('facts', models.JSONField(default=dict)),
                    ('timer', models.CharField(blank=True, max_length=40)),
                    ('grounds', models.TextField()),
                    ('incident', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='recovery.incident')),
                ],
            ),
            migrations.CreateModel(
                name='Trial',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('based_on', models.PositiveIntegerField()),
                    ('document', models.JSONField()),
                    ('document_sha256', models.CharField(max_length=64)),
                    ('calls', models.IntegerField()),
                    ('counts', models.JSONField()),
                    ('rows', models.JSONField()),
                    ('took_ms', models.IntegerField()),
                    ('person_name', models.CharField(max_length=200)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('person', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('tool', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='trials', to='ledger.tool')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'indexes': [models.Index(fields=['tool', 'document_sha256'], name='trial_of_document')],
                },
            ),
            migrations.CreateModel(
                name='Aside',
                fields=[
                    ('incident', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='aside', serialize=False, to='recovery.incident')),
                    ('until', models.DateTimeField()),
                    ('level', models.IntegerField()),
                    ('by_name', models.CharField(max_length=200)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
            ),
            migrations.CreateModel(
                name='Assignment',
                fields=[
                    ('incident', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='assignment', serialize=False, to='recovery.incident')),
                    ('to_name', models.CharField(max_length=200)),
                    ('by_name', models.CharField(max_length=200)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('to', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
            ),
            migrations.CreateModel(
                name='Taking',
                fields=[
                    ('incident', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='taking', serialize=False, to='recovery.incident')),
                    ('by_name', models.CharField(max_length=200)),
                    ('taken_at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('active_at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
            ),
        ),
        Together(
            pgtrigger.migrations.AddTrigger(
                model_name='breakerchange',
                trigger=pgtrigger.compiler.Trigger(name='breaker_change_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='9d42200e3bd12a1bcf69db21f6b6cbd35028de95', operation='UPDATE OR DELETE', pgid='pgtrigger_breaker_change_append_only_a4284', table='recovery_breakerchange', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='grant',
                trigger=pgtrigger.compiler.Trigger(name='grant_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='38f9dfe7adbaae3ca15a8719b4c850cf39dca03d', operation='UPDATE OR DELETE', pgid='pgtrigger_grant_append_only_26a69', table='recovery_grant', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='personsintent',
                trigger=pgtrigger.compiler.Trigger(name='persons_intent_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='3b174f05a038d4204a4eea584221d30e69773c47', operation='UPDATE OR DELETE', pgid='pgtrigger_persons_intent_append_only_7338c', table='recovery_personsintent', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='refusal',
                trigger=pgtrigger.compiler.Trigger(name='refusal_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='1892a5040480408169c3773b290a34c0255b0e0c', operation='UPDATE OR DELETE', pgid='pgtrigger_refusal_append_only_9148b', table='recovery_refusal', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='repeat',
                trigger=pgtrigger.compiler.Trigger(name='repeat_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='29946eb404148f30af2ebe4f077ce7beaf8478d0', operation='UPDATE OR DELETE', pgid='pgtrigger_repeat_append_only_854e9', table='recovery_repeat', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='resolutionevent',
                trigger=pgtrigger.compiler.Trigger(name='resolution_event_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='4c60c293b7890f6f8fc6b37a1e55d426b5d7b8eb', operation='UPDATE OR DELETE', pgid='pgtrigger_resolution_event_append_only_3ad0c', table='recovery_resolutionevent', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='resolutionevidence',
                trigger=pgtrigger.compiler.Trigger(name='resolution_evidence_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='60ee133f84f4b4c3a158c45440833bb20e735634', operation='UPDATE OR DELETE', pgid='pgtrigger_resolution_evidence_append_only_13ebb', table='recovery_resolutionevidence', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='resolution',
                trigger=pgtrigger.compiler.Trigger(name='resolution_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='b8b661006b63c615294949281254c4479b71249e', operation='UPDATE OR DELETE', pgid='pgtrigger_resolution_append_only_e8219', table='recovery_resolution', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='resolution',
                trigger=pgtrigger.compiler.Trigger(name='deny_only_the_dead', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."answer" = \'did_not_happen\')', func="\n        IF NOT EXISTS (SELECT FROM ledger_attempt a WHERE a.id = NEW.attempt_id\n               AND a.call_id = NEW.call_id AND a.dead_proof <> ''\n               AND a.unlocks_at <= clock_timestamp()) THEN\n            RAISE EXCEPTION 'resolution % denies an attempt that is not proven dead', NEW.id\n                USING ERRCODE = 'CH006';\n        END IF;\n        RETURN NEW;\n    ", hash='af42795abd3b679f5e3d6814c6ca03dcc8c1803b', operation='INSERT', pgid='pgtrigger_deny_only_the_dead_594f5', table='recovery_resolution', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='step',
                trigger=pgtrigger.compiler.Trigger(name='step_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='da13c7f4e07d5295878f1d20ba44ab06ebc78770', operation='UPDATE OR DELETE', pgid='pgtrigger_step_append_only_8235e', table='recovery_step', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='trial',
                trigger=pgtrigger.compiler.Trigger(name='trial_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='c3091c985d4d5cbafe6e7c4fd2a2ff763c3c8646', operation='UPDATE OR DELETE', pgid='pgtrigger_trial_append_only_1a2fe', table='recovery_trial', when='BEFORE')),
            ),
        ),
        *(
            migrations.RunSQL(statement, migrations.RunSQL.noop)
            for statement in same_workspace_sql(guards.SAME_WORKSPACE)
        ),
        migrations.RunSQL(guards.ATTEMPTING, guards.NOT_ATTEMPTING),
    ]
