"""Resolutions: what people decide of a call whose effect is unknown, and what became of it.

Both tables are only ever added to. A resolution says what was decided, by whom, on which grounds
and after looking at what; its events say whether it was approved, taken back, carried out or
overtaken. At most one event ends it. A correction is a resolution that supersedes.
"""

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models import Attempt, Evidence, ToolCall, Workspace
from ledger.models.fields import ClockTimestamp, WordField, append_only
from ledger.vocabulary import ResolutionAnswer, ResolutionStage
from recovery.models.incidents import Incident

ENDS = (
    ResolutionStage.DECLINED,
    ResolutionStage.TAKEN_BACK,
    ResolutionStage.LAPSED,
    ResolutionStage.OVERTAKEN,
    ResolutionStage.CARRIED_OUT,
)

DENY_ONLY_THE_DEAD = pgtrigger.Trigger(
    name="deny_only_the_dead",
    when=pgtrigger.Before,
    operation=pgtrigger.Insert,
    condition=pgtrigger.Q(new__answer="did_not_happen"),
    func="""
        IF NOT EXISTS (SELECT FROM ledger_attempt a WHERE a.id = NEW.attempt_id
               AND a.call_id = NEW.call_id AND a.dead_proof <> ''
               AND a.unlocks_at <= clock_timestamp()) THEN
            RAISE EXCEPTION 'resolution % denies an attempt that is not proven dead', NEW.id
                USING ERRCODE = 'CH006';
        END IF;
        RETURN NEW;
    """,
)


class Resolution(models.Model):
    """A person's decision on a call, as it was recorded. What became of it: its events."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="resolutions")
    incident = models.ForeignKey(
        Incident, null=True, on_delete=models.PROTECT, related_name="resolutions"
    )
    attempt = models.ForeignKey(
        Attempt, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    answer = WordField(ResolutionAnswer, max_length=20)
    then = models.CharField(max_length=10, blank=True)
    evidence = models.ManyToManyField(Evidence, through="ResolutionEvidence", related_name="+")
    result = models.ForeignKey(
        Evidence, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    error = models.TextField(blank=True)
    handle_kind = models.CharField(max_length=20, blank=True)
    handle_endpoint = models.TextField(blank=True)
    handle_encrypted = models.BinaryField(null=True)
    grounds = models.TextField()
    decision_version = models.IntegerField()
    level = models.IntegerField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=200)
    by_roles = ArrayField(models.CharField(max_length=20))
    login_age_s = models.FloatField()
    at = models.DateTimeField(db_default=ClockTimestamp())
    carry_out_after_s = models.FloatField()
    needs_second_person = models.BooleanField(default=False)
    is_correction = models.BooleanField(default=False)
    supersedes = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="superseded_by", db_index=False
    )
    template = models.CharField(max_length=40, blank=True)
    template_version = models.IntegerField(default=0)
    bulk_row = models.ForeignKey(
        "recovery.BulkRow", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )

    class Meta:
        triggers = [append_only("resolution_append_only"), DENY_ONLY_THE_DEAD]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "id"], name="resolution_in_workspace"),
            models.CheckConstraint(
                name="resolution_has_grounds", condition=~Q(grounds="") & ~Q(by_name="")
            ),
        ]

    def __str__(self) -> str:
        return ids.shown("resolution", self.id)


class ResolutionEvidence(models.Model):
    """A piece of evidence that a resolution rests on."""

    resolution = models.ForeignKey(Resolution, on_delete=models.PROTECT, related_name="backing")
    evidence = models.ForeignKey(
        Evidence, on_delete=models.PROTECT, related_name="+", db_index=False
    )

    class Meta:
        triggers = [append_only("resolution_evidence_append_only")]

    def __str__(self) -> str:
        return f"{self.evidence_id} for {self.resolution_id}"


class ResolutionEvent(models.Model):
    """What became of a resolution: by whom (None: by the machine), when and why."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    resolution = models.ForeignKey(Resolution, on_delete=models.PROTECT, related_name="events")
    kind = WordField(ResolutionStage, max_length=20)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True)
    grounds = models.TextField(blank=True)
    event_seq = models.IntegerField(null=True)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("resolution_event_append_only")]
        constraints = [
            # Whoever comes second, the watchdog or a person, is refused by PostgreSQL.
            models.UniqueConstraint(
                fields=["resolution"],
                condition=Q(kind__in=[str(each) for each in ENDS]),
                name="resolution_ends_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.resolution_id}"
