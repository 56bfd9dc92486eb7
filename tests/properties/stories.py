"""What is recorded of a call, told without ids and instants, so that two calls can be compared."""

from typing import Any
from uuid import UUID

from ledger.journal import events_of
from ledger.models import Attempt, Chunk, Evidence, Handle, Interrupt, Result, ToolCall
from recovery import stages
from recovery.models import Grant, Incident, Resolution, Step

COLUMNS = ("state", "effect", "fence", "attempts_used", "workers_lost", "reason", "cause")
ATTEMPT = ("fence", "kind", "outcome", "cause", "means", "finding", "dead_proof", "cursor")


def story_of(call_id: UUID) -> dict[str, Any]:
    """Every row of a call that a verb may have written; a call that is not there has none."""
    attempts = Attempt.objects.filter(call=call_id).order_by("fence")
    incidents = Incident.objects.filter(call=call_id).order_by("number")
    return {
        "call": ToolCall.objects.filter(id=call_id).values_list(*COLUMNS).first(),
        "events": [(each.kind, str(each.effect), each.cause) for each in events_of(call_id)],
        "attempts": [
            (*(getattr(each, name) for name in ATTEMPT), each.crossed_at is None,
             each.disproved_at is None, each.fence_lost_at is None)
            for each in attempts
        ],
        "incidents": [(str(each.state), each.steps_taken, each.closed_at is None)
                      for each in incidents],
        "steps": Step.objects.filter(incident__in=incidents).count(),
        "resolutions": [(str(each.answer), str(stages.of(each)))
                        for each in Resolution.objects.filter(call=call_id).order_by("at")],
        "grants": Grant.objects.filter(call=call_id).count(),
        "interrupts": list(Interrupt.objects.filter(call=call_id).order_by("asked_at")
                           .values_list("phase", "ended_as", "answer")),
        "results": Result.objects.filter(call=call_id).count(),
        "evidence": Evidence.objects.filter(call=call_id).count(),
        "handles": list(Handle.objects.filter(call=call_id).values_list("polls", flat=True)),
        "chunks": Chunk.objects.filter(attempt__in=attempts).count(),
    }  # fmt: skip
