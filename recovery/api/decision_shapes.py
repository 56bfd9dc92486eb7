"""Turns decisions and what they rest on into what the API shows."""

from typing import Any

from ledger import ids, machine, masking, masks
from ledger.api.shapes import body, instant
from ledger.models import Evidence, ToolCall
from ledger.vocabulary import ResolutionStage
from recovery import previews, stages
from recovery.models import Dispute, Resolution, ResolutionEvent
from recovery.resolutions import Offer
from recovery.rulings import Facts, Ruling


def resolution(row: Resolution) -> dict[str, Any]:
    """A resolution, how far it has come, and its events. A handle's value is never shown."""
    stage = stages.of(row)
    pending = row.incident.pending_id == row.id if row.incident else False
    until = instant(row.incident.pending_until) if pending and row.incident else None
    return {
        "id": ids.shown("resolution", row.id),
        "call": ids.shown("call", row.call_id),
        "incident": row.incident_id and ids.shown("incident", row.incident_id),
        "stage": stage,
        "answer": row.answer,
        "then": row.then or None,
        "grounds": row.grounds,
        "evidence": [
            ids.shown("evidence", each)
            for each in row.backing.order_by("id").values_list("evidence_id", flat=True)
        ],
        "result": row.result_id and ids.shown("evidence", row.result_id),
        "error": row.error or None,
        "attempt": row.attempt.fence if row.attempt else None,
        "decision_version": row.decision_version,
        "level": row.level,
        "by": row.by_name,
        "at": instant(row.at),
        "needs_second_person": row.needs_second_person,
        "carry_out_after_s": row.carry_out_after_s,
        "carry_out_at": until if stage is ResolutionStage.PENDING else None,
        "request_ends_at": until if stage is ResolutionStage.REQUESTED else None,
        "is_correction": row.is_correction,
        "supersedes": row.supersedes_id and ids.shown("resolution", row.supersedes_id),
        "events": [event(each) for each in row.events.order_by("at")],
    }


def event(row: ResolutionEvent) -> dict[str, Any]:
    """One event of a resolution; `by` is null where the machine made it."""
    return {
        "kind": row.kind,
        "by": row.by_name or None,
        "at": instant(row.at),
        "grounds": row.grounds or None,
        "event_seq": row.event_seq,
    }


def dispute(row: Dispute) -> dict[str, Any]:
    """A dispute: what is disputed, what is said instead, and the decision about it, if any."""
    return {
        "resolution": ids.shown("resolution", row.resolution_id),
        "incident": ids.shown("incident", row.incident_id),
        "answer": row.answer,
        "then": row.then or None,
        "grounds": row.grounds,
        "by": row.by_name,
        "at": instant(row.at),
        "decision": row.decision_id and ids.shown("resolution", row.decision_id),
    }


def evidence(row: Evidence) -> dict[str, Any]:
    """A piece of evidence: what it is and says. Its body stands at `/evidence/{evidence_id}`."""
    return {
        "id": ids.shown("evidence", row.id),
        "kind": row.kind,
        "finding": row.finding or None,
        "message": row.message or None,
        "reference": row.reference or None,
        "by": row.by_name or None,
        "at": instant(row.at),
        "attempt": row.attempt.fence if row.attempt else None,
        "media_type": row.media_type,
        "sha256": row.sha256,
        "size_bytes": row.size_bytes,
        "adoptable": row.adoptable,
    }


def whole_evidence(row: Evidence) -> dict[str, Any]:
    """A piece of evidence with the call that it is about, and its body."""
    return evidence(row) | {"call": ids.shown("call", row.call_id)} | body(row)


def on_file(call: ToolCall) -> dict[str, Any]:
    """The evidence and the resolutions on a call's file, oldest first."""
    given = Resolution.objects.filter(call=call).order_by("at")
    return {
        "evidence": [evidence(each) for each in call.evidence.order_by("at")],
        "resolutions": [resolution(each) for each in given],
        "disputes": [dispute(each) for each in Dispute.objects.filter(call=call).order_by("at")],
    }


def preview(facts: Facts, ruling: Ruling, **model: Any) -> dict[str, Any]:
    """The four boxes, always in this order, masked (console, sections 6 and 14).

    `model` adds to the third one: the text of a correction.
    """
    call = ToolCall.objects.get(id=ids.read("call", facts.call))
    return dict(masking.masked(_boxes(call, facts, ruling, model), known=masks.of(call).texts))


def _boxes(call: ToolCall, facts: Facts, ruling: Ruling, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "decision_version": facts.decision_version,
        "level": ruling.level,
        "confirm": ruling.confirm or None,
        "deed": ruling.deed,
        "outside": {"sentence": ruling.outside, "request": ruling.request},
        "ledger": _ledger(facts, ruling) | {"budgets": previews.budgets(call, ruling)},
        "model": _model(ruling) | {"place": previews.place(call)} | model,
        "afterwards": {
            "sentence": f"{_when(ruling)} {ruling.afterwards}",
            "carry_out_after_s": ruling.delay_s,
            "needs_second_person": ruling.second_person,
            **previews.aftermath(facts, ruling),
        },
    }


def _ledger(facts: Facts, ruling: Ruling) -> dict[str, Any]:
    kept = facts.armed & machine.TIMERS[ruling.state]
    allowed = ruling.columns.get("attempts_allowed", facts.attempts_allowed)
    return {
        "event": ruling.event,
        "state": {"before": facts.state, "after": ruling.state},
        "effect": {"before": facts.effect, "after": ruling.effect},
        "attempt": ruling.judged.fence if ruling.judged else None,
        "attempts_used": facts.attempts_used,
        "attempts_allowed": {"before": facts.attempts_allowed, "after": allowed},
        "deadlines": {
            "armed_s": {str(name): seconds for name, seconds in ruling.arm.items()},
            "kept": sorted(str(each) for each in kept - set(ruling.arm)),
            "disarmed": sorted(str(each) for each in facts.armed - kept - set(ruling.arm)),
        },
    }


def _model(ruling: Ruling) -> dict[str, Any]:
    if ruling.told is None:
        return {"sentence": ruling.model, "notice": None}
    told = ruling.told.to_json() | {"size_bytes": len(ruling.told.text.encode())}
    return {"sentence": "The model reads this text, word for word.", "notice": told}


def _when(ruling: Ruling) -> str:
    if ruling.second_person:
        return "It waits for a second person, for 30 minutes at most."
    if not ruling.delay_s:
        return "It is carried out at once and cannot be taken back."
    return f"It is carried out after {ruling.delay_s:g} s; until then it can be taken back."


def offer(each: Offer) -> dict[str, Any]:
    """An answer as it is offered: allowed, or the code and the reason why not."""
    return {
        "answer": each.answer,
        "then": each.then or None,
        "allowed": each.allowed,
        "code": each.code or None,
        "why": each.why or None,
        "current": each.current,
    }
