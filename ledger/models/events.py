"""Events: the record itself. A call's row is the projection of its last event.

Before an event is stored, PostgreSQL checks that it goes on where the last one ended and that
the machine has such an edge, numbers it, dates it and chains it (I19 to I23). No event is ever
changed or deleted.
"""

import json
from typing import Any

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models

from ledger.models.fields import ClockTimestamp, WordField, append_only, moment
from ledger.models.workspaces import Workspace
from ledger.vocabulary import Actor, CallState, Effect

GUARD = pgtrigger.Trigger(
    name="event_guard",
    when=pgtrigger.Before,
    operation=pgtrigger.Insert,
    declare=[("last", "ledger_event%ROWTYPE"), ("edge", "ledger_publishedtransition%ROWTYPE")],
    func="""
        SELECT * INTO last FROM ledger_event
         WHERE call_id = NEW.call_id ORDER BY seq DESC LIMIT 1;
        SELECT * INTO edge FROM ledger_publishedtransition
         WHERE kind = NEW.kind AND source = NEW.from_state
           AND target = NEW.to_state AND actor = NEW.actor;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'illegal edge: % from % to % by %', NEW.kind,
                coalesce(nullif(NEW.from_state, ''), 'nothing'), NEW.to_state, NEW.actor
                USING ERRCODE = 'CH001';
        END IF;
        IF coalesce(last.to_state, '') <> NEW.from_state THEN
            RAISE EXCEPTION 'event % starts from %, the call stands at %', NEW.kind,
                NEW.from_state, coalesce(last.to_state, 'nothing') USING ERRCODE = 'CH002';
        END IF;
        IF edge.effects IS NULL AND coalesce(last.effect, NEW.effect) <> NEW.effect
           OR edge.effects IS NOT NULL AND NOT NEW.effect = ANY (edge.effects) THEN
            RAISE EXCEPTION 'event % cannot turn the effect from % into %', NEW.kind,
                last.effect, NEW.effect USING ERRCODE = 'CH003';
        END IF;
        NEW.seq := coalesce(last.seq, 0) + 1;
        NEW.at := greatest(clock_timestamp(), last.at);
        NEW.settles := edge.settles;
        NEW.prev_hash := coalesce(last.hash, ''::bytea);
        NEW.hash := ledger_event_hash(NEW);
        RETURN NEW;
    """,
)


DENIAL = pgtrigger.Trigger(
    name="denial_guard",
    when=pgtrigger.Before,
    operation=pgtrigger.Insert,
    condition=pgtrigger.Q(new__actor="operator", new__effect="did_not_happen"),
    func="""
        IF (SELECT effect FROM ledger_event WHERE call_id = NEW.call_id
             ORDER BY seq DESC LIMIT 1) = 'possible' AND EXISTS (
            SELECT FROM ledger_attempt a WHERE a.call_id = NEW.call_id
               AND a.crossed_at IS NOT NULL AND a.means NOT IN ('not_begun', 'refused')
               AND (a.dead_proof <> '' AND a.unlocks_at <= clock_timestamp()) IS NOT TRUE) THEN
            RAISE EXCEPTION 'call % has an attempt that is not proven dead: its effect cannot '
                'be denied yet', NEW.call_id USING ERRCODE = 'CH006';
        END IF;
        RETURN NEW;
    """,
)
"""Deny only the dead, whoever asks (I2): its condition costs every other event nothing."""


class PublishedTransition(models.Model):
    """The rows of `ledger.machine.TRANSITIONS` for PostgreSQL, one for each edge and actor."""

    pk = models.CompositePrimaryKey("kind", "source", "target", "actor")
    kind = models.CharField(max_length=40)
    source = models.CharField(max_length=20)
    target = models.CharField(max_length=20)
    actor = models.CharField(max_length=20)
    effects = ArrayField(models.CharField(max_length=20), null=True)
    settles = models.BooleanField()

    def __str__(self) -> str:
        return f"{self.kind}: {self.source} to {self.target} by {self.actor}"


class Pair(models.Model):
    """The rows of `ledger.machine.pair_is_allowed`: state, effect and recovery class."""

    pk = models.CompositePrimaryKey("state", "effect", "recovery_class")
    state = models.CharField(max_length=20)
    effect = models.CharField(max_length=20)
    recovery_class = models.CharField(max_length=20)

    def __str__(self) -> str:
        return f"{self.state} with {self.effect} under {self.recovery_class}"


class Event(models.Model):
    """One row for each transition: who, when, from, to, with what facts (canonical JSON)."""

    pk = models.CompositePrimaryKey("call_id", "seq")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    call = models.ForeignKey(
        "ledger.ToolCall",
        on_delete=models.PROTECT,
        related_name="events",
        db_index=False,
        db_constraint=False,
    )
    seq = models.IntegerField()
    kind = models.CharField(max_length=40)
    from_state = models.CharField(max_length=20, blank=True)
    to_state = WordField(CallState, max_length=20)
    effect = WordField(Effect, max_length=20)
    actor = WordField(Actor, max_length=20)
    actor_id = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField(db_default=ClockTimestamp())
    fence = models.IntegerField(null=True)
    lease_until = moment()
    cause = models.CharField(max_length=40, blank=True)
    settles = models.BooleanField(default=False)
    facts = models.TextField(default="{}")
    prev_hash = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)

    class Meta:
        triggers = [GUARD, DENIAL, append_only("event_append_only")]
        indexes = [
            # What people did, for the audit: it costs every other event nothing.
            models.Index(
                fields=["workspace", "at"],
                name="event_of_operator",
                condition=models.Q(actor="operator"),
            )
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"

    @property
    def facts_json(self) -> dict[str, Any]:
        """The facts as an object."""
        return dict(json.loads(self.facts))
