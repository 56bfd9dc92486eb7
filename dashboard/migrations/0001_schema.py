"""What the console keeps of people: profiles, deeds, saved views, tries to log in."""

import django.db.models.deletion
import ledger.ids
import ledger.models.fields
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from ledger.together import Together


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('dashboard', '0001_profiles'),
        ('dashboard', '0002_deeds'),
        ('dashboard', '0003_logins'),
        ('dashboard', '0004_saved_views'),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('ledger', '0001_schema'),
    ]

    operations = [
        Together(
            migrations.CreateModel(
                name='Profile',
                fields=[
                    ('person', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='profile', serialize=False, to=settings.AUTH_USER_MODEL)),
                    ('zone', models.CharField(blank=True, max_length=64)),
                    ('theme', models.CharField(choices=[('system', 'system'), ('light', 'light'), ('dark', 'dark')], default='system', max_length=10)),
                    ('letters', models.BooleanField(default=True)),
                    ('tall_rows', models.BooleanField(default=False)),
                    ('logins_from', models.DateTimeField(blank=True, null=True)),
                    ('one_time_until', models.DateTimeField(blank=True, null=True)),
                ],
            ),
            migrations.CreateModel(
                name='Deed',
                fields=[
                    ('id', models.UUIDField(default=ledger.ids.new, editable=False, primary_key=True, serialize=False)),
                    ('person_name', models.CharField(max_length=200)),
                    ('deed', models.CharField(max_length=60)),
                    ('target', models.CharField(blank=True, max_length=200)),
                    ('grounds', models.TextField(blank=True)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('person', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
            ),
            migrations.CreateModel(
                name='SavedView',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('person_name', models.CharField(max_length=150)),
                    ('page', models.CharField(max_length=20)),
                    ('name', models.CharField(max_length=80)),
                    ('query', models.CharField(blank=True, max_length=2000)),
                    ('is_shared', models.BooleanField(default=False)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('person', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('person', 'workspace', 'page', 'name'), name='saved_view_named_once')],
                },
            ),
            migrations.CreateModel(
                name='TryCounter',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(max_length=10)),
                    ('key', models.CharField(max_length=64)),
                    ('tries', models.IntegerField(default=0)),
                    ('since', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp(), db_index=True)),
                    ('known', models.BooleanField(default=False)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('kind', 'key'), name='try_counter_once')],
                },
            ),
            migrations.CreateModel(
                name='WorkspaceChange',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('what', models.CharField(choices=[('invited', 'invited'), ('roles_changed', 'roles_changed'), ('password_renewed', 'password_renewed'), ('deactivated', 'deactivated'), ('activated', 'activated'), ('key_made', 'key_made'), ('key_revoked', 'key_revoked')], max_length=20)),
                    ('about', models.CharField(max_length=200)),
                    ('before', models.CharField(blank=True, max_length=300)),
                    ('after', models.CharField(blank=True, max_length=300)),
                    ('grounds', models.CharField(max_length=500)),
                    ('by_id', models.IntegerField()),
                    ('by_name', models.CharField(max_length=150)),
                    ('at', models.DateTimeField(db_default=ledger.models.fields.ClockTimestamp())),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ledger.workspace')),
                ],
                options={
                    'indexes': [models.Index(fields=['workspace', '-id'], name='workspace_change_newest')],
                },
            ),
        ),
        Together(
            pgtrigger.migrations.AddTrigger(
                model_name='deed',
                trigger=pgtrigger.compiler.Trigger(name='deed_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='16f973ee39fa941e95acbabd107849df11890786', operation='UPDATE OR DELETE', pgid='pgtrigger_deed_append_only_a4101', table='dashboard_deed', when='BEFORE')),
            ),
            pgtrigger.migrations.AddTrigger(
                model_name='workspacechange',
                trigger=pgtrigger.compiler.Trigger(name='workspace_change_append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='0f8f46dc0e560fd0b4f764945c7b25a38fb5ad19', operation='UPDATE OR DELETE', pgid='pgtrigger_workspace_change_append_only_a57b2', table='dashboard_workspacechange', when='BEFORE')),
            ),
        ),
    ]
