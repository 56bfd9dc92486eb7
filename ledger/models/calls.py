"""The tool call: the unit of truth. Its row projects its last event, plus its deadlines.

Only `ledger/journal.py` changes state, effect or sequence, and PostgreSQL refuses a change that
does not agree with the call's last event.
"""

from typing import Any, Self
from uuid import UUID

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Least, Left

from ledger import ids, traces
from ledger.models.fields import WordField, moment
from ledger.models.sessions import Session, Turn
from ledger.models.tools import Policy, ToolVersion
from ledger.models.workspaces import Agent, Workspace
from ledger.vocabulary import (
    OPEN,
    SETTLED,
    CallState,
    Cause,
    Deadline,
    Effect,
    FailurePoint,
    RecoveryClass,
)

GUARD = pgtrigger.Trigger(
    name="call_guard",
    when=pgtrigger.Before,
    operation=pgtrigger.Insert
    | pgtrigger.UpdateOf(  # type: ignore[no-untyped-call]
        "state", "effect", "seq", "head_hash", "settled_at", "recovery_class"
    ),
    declare=[("last", "ledger_event%ROWTYPE")],
    func="""
        SELECT * INTO last FROM ledger_event
         WHERE call_id = NEW.id ORDER BY seq DESC LIMIT 1;
        IF NOT FOUND OR last.seq <> NEW.seq OR last.to_state <> NEW.state
           OR last.effect <> NEW.effect THEN
            RAISE EXCEPTION 'call % cannot stand at % (%), event %: its last event is % at % (%)',
                NEW.id, NEW.state, NEW.effect, NEW.seq, last.seq, last.to_state, last.effect
                USING ERRCODE = 'CH004';
        END IF;
        IF NOT EXISTS (SELECT FROM ledger_pair p WHERE p.state = NEW.state
                       AND p.effect = NEW.effect AND p.recovery_class = NEW.recovery_class) THEN
            RAISE EXCEPTION 'a % call cannot be % with the effect %', NEW.recovery_class,
                NEW.state, NEW.effect USING ERRCODE = 'CH005';
        END IF;
        NEW.head_hash := last.hash;
        IF last.settles THEN
            NEW.settled_at := last.at;
            NEW.finished_at := least(NEW.finished_at, last.at);
        ELSIF TG_OP = 'INSERT' THEN
            NEW.settled_at := NULL;
        ELSE
            NEW.settled_at := OLD.settled_at;
        END IF;
        RETURN NEW;
    """,
)
UNRESOLVED = Q(
    state__in=["interrupted", "ambiguous"],
    effect="possible",
    recovery_class="side_effect",
    turn__isnull=False,
)
"""Side effects that may have happened: what their turn waits for. Keep `holds.BLOCKS` in step."""

NO_OUTCOME = Q(state__in=[CallState.INTERRUPTED, CallState.AMBIGUOUS]) | Q(
    turn__closed_at__isnull=False
)
"""Of the open calls those that nobody has an outcome for (R131)."""

STAYS = pgtrigger.Protect(name="call_stays", operation=pgtrigger.Delete)


class ToolCallQuerySet(models.QuerySet["ToolCall"]):
    """What is asked about many calls."""

    def open(self) -> Self:
        return self.filter(settled_at__isnull=True)

    def no_settled_result(self) -> Self:
        """R131: interrupted, ambiguous, and open calls whose turn is closed (semantics, 1.6)."""
        return self.open().filter(NO_OUTCOME)

    def locked(self, call_id: UUID) -> "ToolCall":
        """The call under its row's lock. Raises DoesNotExist."""
        return self.select_for_update(of=("self",)).get(id=call_id)


def _deadline() -> Any:
    return moment()


class ToolCall(models.Model):
    """One recorded request by a model to use a tool.

    Agent, session and turn are those that asked for it, for ever. `handed_off` is the hand-off by
    which its present owner took it, empty while it is still the one that asked.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    session = models.ForeignKey(
        Session,
        null=True,
        on_delete=models.PROTECT,
        related_name="calls",
        db_index=False,
        db_constraint=False,
    )
    turn = models.ForeignKey(
        Turn,
        null=True,
        on_delete=models.PROTECT,
        related_name="calls",
        db_index=False,
        db_constraint=False,
    )
    tool_version = models.ForeignKey(
        ToolVersion, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    policy = models.ForeignKey(
        Policy, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    tool = models.CharField(max_length=128)

    tool_call_id = models.CharField(max_length=255, blank=True)
    model_step = models.IntegerField(default=0)
    position = models.IntegerField(default=0)
    binding_epoch = models.IntegerField(default=1)
    arguments = models.TextField()
    arguments_received = models.TextField(null=True)  # noqa: DJ001 null: as the canonical ones
    arguments_sha256 = models.CharField(max_length=64)
    idempotency_key = models.CharField(max_length=255, null=True)  # noqa: DJ001 null: none was sent
    effect_key = models.CharField(max_length=300)
    template_key = models.CharField(max_length=300, null=True)  # noqa: DJ001 null: no template
    twin_of = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.PROTECT,
        related_name="twins",
        db_index=False,
        db_constraint=False,
    )
    handed_off = models.ForeignKey(
        "ledger.HandOff",
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    prompt_tokens = models.IntegerField(null=True)
    api_key_id = models.CharField(max_length=12, blank=True)
    traceparent = models.CharField(max_length=55, null=True)  # noqa: DJ001 null: no trace

    recovery_class = WordField(RecoveryClass, max_length=20)
    queue = models.CharField(max_length=10)
    state = WordField(CallState, max_length=20)
    effect = WordField(Effect, max_length=20)
    fence = models.IntegerField(default=0)
    seq = models.IntegerField(default=0)
    head_hash = models.BinaryField(max_length=32, default=b"")
    attempts_used = models.IntegerField(default=0)
    attempts_allowed = models.IntegerField()
    workers_lost = models.IntegerField(default=0)
    cause = WordField(Cause, blank=True)
    failure_point = WordField(FailurePoint, blank=True)
    error = models.TextField(blank=True)
    reason = models.CharField(max_length=60, blank=True)
    notice_seq = models.IntegerField(null=True)

    schedule_to_start_at = _deadline()
    start_to_close_at = _deadline()
    schedule_to_close_at = _deadline()
    heartbeat_at = _deadline()
    backoff_at = _deadline()
    next_poll_at = _deadline()
    next_step_at = _deadline()
    recovery_window_at = _deadline()
    review_at = _deadline()
    interrupt_expiry_at = _deadline()
    due_at = models.GeneratedField(
        expression=Least(*(f"{deadline}_at" for deadline in Deadline)),
        output_field=models.DateTimeField(null=True),
        db_persist=True,
    )
    held_at = moment()
    ring_at = moment()
    rings = models.IntegerField(default=0)

    recorded_at = moment()
    published_at = moment()
    started_at = moment()
    crossed_at = moment()
    finished_at = moment()
    settled_at = moment()
    delivered_at = moment()
    cancel_requested_at = moment()

    objects = ToolCallQuerySet.as_manager()

    class Meta:
        triggers = [GUARD, STAYS]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "id"], name="call_in_workspace"),
            models.UniqueConstraint(
                fields=["agent", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="call_key_once",
            ),
            models.UniqueConstraint(
                fields=["session", "turn", "model_step", "position", "tool_call_id"],
                condition=Q(idempotency_key__isnull=True, session__isnull=False)
                & ~Q(tool_call_id=""),
                name="call_natural_key_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="open_call_has_deadline",
                condition=Q(settled_at__isnull=False) | Q(due_at__isnull=False),
            ),
            models.CheckConstraint(
                name="settled_call_has_no_deadline",
                condition=Q(settled_at__isnull=True) | Q(due_at__isnull=True),
            ),
            models.CheckConstraint(
                name="settled_says_when",
                condition=Q(state__in=sorted(SETTLED), settled_at__isnull=False)
                | Q(state__in=sorted(OPEN), settled_at__isnull=True),
            ),
            models.CheckConstraint(
                name="traceparent_was_read", condition=Q(traceparent__regex=traces.KEPT)
            ),
        ]
        indexes = [
            # Partial, so that settled calls cost the sweeps and the claim nothing.
            models.Index(
                fields=["due_at"], name="call_due_open", condition=Q(settled_at__isnull=True)
            ),
            models.Index(
                fields=["queue", "published_at"],
                name="call_claimable",
                condition=Q(state="scheduled"),
            ),
            models.Index(
                fields=["session", "id"], name="call_of_session", condition=Q(session__isnull=False)
            ),
            # What a twin is looked up by. Calls without session and template are in neither.
            models.Index(
                "session",
                Left("arguments_sha256", 8),
                name="call_same_arguments",
                condition=Q(session__isnull=False, twin_of__isnull=True),
            ),
            models.Index(
                fields=["workspace", "tool", "template_key"],
                name="call_same_template_key",
                condition=Q(template_key__isnull=False, twin_of__isnull=True),
            ),
            models.Index(
                fields=["workspace", "twin_of"],
                name="call_twins",
                condition=Q(twin_of__isnull=False),
            ),
            models.Index(fields=["turn"], name="call_holds_turn", condition=UNRESOLVED),
            models.Index(
                fields=["handed_off"],
                name="call_handed_off",
                condition=Q(handed_off__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return ids.shown("call", self.id)

    def get_absolute_url(self) -> str:
        return f"/api/v1/calls/{ids.shown('call', self.id)}"

    @property
    def is_settled(self) -> bool:
        return self.state in SETTLED

    @property
    def marker(self) -> str:
        return ids.marker(self.id)

    @property
    def trace_id(self) -> str:
        return traces.id_of(self.traceparent)
