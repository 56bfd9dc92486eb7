"""Turns rows into what the API shows. Instants are RFC 3339 in UTC."""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db.models import F, QuerySet

from ledger import holds, ids, partials
from ledger.calls import Fetchable
from ledger.interruptions import Fate, Interrupted
from ledger.known import AGAIN
from ledger.messages import Said
from ledger.models import (
    Attempt,
    Event,
    Evidence,
    Message,
    Policy,
    Result,
    Session,
    Switch,
    Tool,
    ToolCall,
    ToolVersion,
    Turn,
    TurnEvent,
)
from ledger.outcomes import told_of
from ledger.partials import Unfinished
from ledger.policies import lint
from ledger.twins import Prevented, prevented, prevented_in
from ledger.vocabulary import CallState, Deadline, Effect, HoldReason

TIMES = ("recorded", "published", "started", "crossed", "finished", "settled", "delivered")
RETRYABLE = (CallState.FAILED, CallState.EXPIRED, CallState.CANCELLED)
ENDS_BY_ITSELF = (HoldReason.TWIN_OPEN, HoldReason.SAME_TARGET)
NO_EFFECT = (Effect.NONE, Effect.NOT_BEGUN, Effect.DID_NOT_HAPPEN)


def instant(moment: datetime | None) -> str | None:
    """An instant as RFC 3339."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None


def etag_of(call: ToolCall) -> str:
    """The weak ETag of a call: it changes with each event."""
    return f'W/"{call.seq}"'


def next_action(call: ToolCall) -> str:
    """What the agent should do now (semantics, section 5, rule 4)."""
    if call.state is CallState.SUCCEEDED:
        return "use_result"
    if is_persons_turn(call):
        return "ask_person"
    if not call.is_settled:
        return "wait"
    return "submit_new" if is_retryable(call) else "nothing"


def _callers_key(row: ToolCall) -> str | None:
    """The key as its caller sent it; a repeat under a known key has a name of the ledger's."""
    key = row.idempotency_key
    return None if key is None or key.startswith(AGAIN) else key


def is_persons_turn(call: ToolCall) -> bool:
    """Whether nothing goes on until a person answers; what another call's end answers waits."""
    held = call.state is CallState.PAUSED and call.reason not in ENDS_BY_ITSELF
    return held or call.state is CallState.AMBIGUOUS


def is_retryable(call: ToolCall) -> bool:
    """Whether the agent may submit this intent anew, under a new key."""
    return call.state in RETRYABLE and call.effect in NO_EFFECT


def call(fetched: Fetchable, *, replayed: bool = False) -> dict[str, Any]:
    """The members of CallOut."""
    row = fetched.call
    return {
        "id": ids.shown("call", row.id),
        "state": row.state,
        "effect": row.effect,
        "cause": row.cause or None,
        "retryable": is_retryable(row),
        "next_action": next_action(row),
        # A twin is answered with the bytes that another call brought.
        "replayed": replayed or (row.twin_of_id is not None and fetched.result is not None),
        "twin_of": row.twin_of_id and ids.shown("call", row.twin_of_id),
        "settled": row.is_settled,
        "failure_point": row.failure_point or None,
        "reason": row.reason or None,
        "error": row.error or None,
        "result": result(fetched.result),
        "notice": _told(fetched),
        "correction": _correction(fetched),
        "incomplete": partials.is_incomplete(row, fetched.unfinished),
        "partial": partial(fetched.unfinished),
        "tool": row.tool,
        "arguments": json.loads(row.arguments_received or row.arguments),
        "arguments_sha256": row.arguments_sha256,
        "idempotency_key": _callers_key(row),
        "session": row.session_id and ids.shown("session", row.session_id),
        "turn": row.turn_id and ids.shown("turn", row.turn_id),
        "tool_call_id": row.tool_call_id,
        "model_step": row.model_step,
        "position": row.position,
        "traceparent": row.traceparent,
        "recovery_class": row.recovery_class,
        "boundary_crossed": row.crossed_at is not None,
        "attempts_used": row.attempts_used,
        "attempts_allowed": row.attempts_allowed,
        "cancel_requested": row.cancel_requested_at is not None,
        "due_at": instant(row.due_at),
        "deadlines": _instants(row, Deadline),
        "times": _instants(row, TIMES),
    }


def _told(fetched: Fetchable) -> dict[str, Any] | None:
    """What the model is told in place of a result, or of one that was corrected."""
    told = told_of(fetched)
    return told.to_json() if told else None


def _correction(fetched: Fetchable) -> dict[str, Any] | None:
    kept = fetched.notice
    if kept is None or not kept.corrects:
        return None
    return {
        "answer": kept.answer,
        "at": instant(kept.at),
        "earlier": kept.earlier,
        "now": kept.text,
        "text": kept.correction,
        "read_before": fetched.read_before,
    }


def _instants(row: ToolCall, names: Any) -> dict[str, str]:
    moments = ((str(name), getattr(row, f"{name}_at")) for name in names)
    return {name: instant(moment) or "" for name, moment in moments if moment is not None}


def result(row: Result | None) -> dict[str, Any] | None:
    """A result with its body, or nothing."""
    return body(row) if row else None


def body(row: Result | Evidence) -> dict[str, Any]:
    """What was received, with its digest: as JSON, or as base64 where it is none."""
    raw = bytes(row.body)
    return {
        "media_type": row.media_type,
        "sha256": row.sha256,
        "size_bytes": row.size_bytes,
        "truncated": row.truncated,
        "why_not_json": row.why_not_json,
        "json": None if row.why_not_json else json.loads(raw),
        "base64": base64.b64encode(raw).decode() if row.why_not_json else None,
    }


def partial(unfinished: Unfinished | None) -> dict[str, Any] | None:
    """Partial output of work that stopped without a result: never a result itself."""
    found = unfinished.partial if unfinished else None
    return asdict(found) if found else None


def event(row: Event) -> dict[str, Any]:
    """The members of EventOut."""
    return {
        "seq": row.seq,
        "kind": row.kind,
        "from_state": row.from_state or None,
        "to_state": row.to_state,
        "effect": row.effect,
        "actor": row.actor,
        "actor_id": row.actor_id,
        "at": instant(row.at),
        "fence": row.fence,
        "cause": row.cause or None,
        "facts": row.facts_json,
        "hash": bytes(row.hash).hex(),
    }


def attempt(row: Attempt) -> dict[str, Any]:
    """One attempt with its worker, times, outcome, proof of death and partial output."""
    partial = b"".join(bytes(chunk.body) for chunk in row.chunks.order_by("id"))
    return {
        "fence": row.fence,
        "kind": row.kind,
        "worker": row.worker.name,
        "host": row.worker.host,
        "granted_by": row.granted_by,
        "traceparent": row.traceparent,
        "fence_kind": row.fence_kind,
        "claimed_at": instant(row.claimed_at),
        "crossed_at": instant(row.crossed_at),
        "lease_until": instant(row.lease_until),
        "fence_lost_at": instant(row.fence_lost_at),
        "ended_at": instant(row.ended_at),
        "outcome": row.outcome or None,
        "cause": row.cause or None,
        "means": row.means or None,
        "error_type": row.error_type or None,
        "error_message": row.error_message or None,
        "finding": row.finding or None,
        "cursor": json.loads(row.cursor) if row.cursor else None,
        "partial_output": partial.decode("utf-8", "replace") if partial else None,
        "dead_proof": row.dead_proof or None,
        "dead_at": instant(row.dead_at),
        "unlocks_at": instant(row.unlocks_at),
    }


def session(row: Session) -> dict[str, Any]:
    """A session, its binding, and how many repeats the ledger answered in it."""
    return _session(row, prevented(workspace_id=row.workspace_id, session_id=row.id))


def sessions(rows: Iterable[Session]) -> list[dict[str, Any]]:
    """The same of many, by one statement."""
    found = list(rows)
    counted = prevented_in(row.id for row in found)
    return [_session(row, counted.get(row.id, Prevented(0, 0))) for row in found]


def _session(row: Session, counted: Prevented) -> dict[str, Any]:
    return {
        "id": ids.shown("session", row.id),
        "label": row.label,
        "binding": {
            "working_directory": row.working_directory,
            "host": row.host,
            "model": row.model,
            "epoch": row.epoch,
        },
        "version": row.version,
        "stopped_at": instant(row.stopped_at),
        "repeats_prevented": counted.repeats,
        "tokens_saved": counted.tokens,
        "created_at": instant(row.created_at),
    }


def turn(row: Turn) -> dict[str, Any]:
    """A turn, and whether it may go on by itself (semantics, 6.2)."""
    waits_for = holds.blocker_in(row.id)
    return {
        "id": ids.shown("turn", row.id),
        "session": ids.shown("session", row.session_id),
        "number": row.number,
        "key": row.key or None,
        "model": row.model,
        "open": row.closed_at is None,
        "closed_as": row.closed_as or None,
        "clean": _is_clean(row),
        "continuable": row.closed_at is None and waits_for is None,
        "waits_for": waits_for and ids.shown("call", waits_for),
        "opened_at": instant(row.opened_at),
        "interrupted_at": instant(row.interrupted_at),
        "grace_until": instant(row.grace_until),
        "closed_at": instant(row.closed_at),
    }


def _is_clean(row: Turn) -> bool | None:
    """Whether a generation that failed has emitted no call (semantics, 13.2); else None."""
    if row.closed_as != "generation_failed":
        return None
    return not ToolCall.objects.filter(session=row.session_id, turn=row).exists()


def message(row: Message) -> dict[str, Any]:
    """The members of MessageOut."""
    return {
        "id": ids.shown("message", row.id),
        "turn": ids.shown("turn", row.turn_id),
        "position": row.position,
        "role": row.role,
        "model_step": row.model_step,
        "key": row.key or None,
        "format": row.format,
        "parts": row.parts_json,
        "model": row.model,
        "stop_reason": row.stop_reason or None,
        "failed": row.failed,
        "sha256": row.sha256,
        "at": instant(row.at),
    }


def said(found: Said) -> dict[str, Any]:
    """The members of SaidOut."""
    return {
        "messages": [message(each) for each in found.messages],
        "repeated": [ids.shown("message", each.id) for each in found.repeated],
        "ignored": [
            {
                "tool_call_id": each.tool_call_id,
                "call": ids.shown("call", each.call_id),
                "equal": each.equal,
            }
            for each in found.ignored
        ],
    }


def refused(kept: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a reply that does not run: a problem, with the text that answers the model."""
    return {
        "status": 422,
        "code": kept["template"],
        "detail": kept["text"],
        "position": kept["position"],
        "tool_call_id": kept["id"],
        "notice": {name: kept[name] for name in ("kind", "template", "version", "text", "sha256")},
    }


def interrupted(done: Interrupted) -> dict[str, Any]:
    """The members of InterruptedOut."""
    shown = {
        str(fate): [ids.shown("call", each) for each in done.calls.get(fate, [])] for fate in Fate
    }
    return {"turn": turn(done.turn), "clean": done.clean, **shown}


def turn_event(row: TurnEvent) -> dict[str, Any]:
    """One event of a turn."""
    return {"kind": row.kind, "by": row.by, "by_id": row.by_id, "facts": row.facts,
            "at": instant(row.at)}  # fmt: skip


def tool(row: Tool) -> dict[str, Any]:
    """A tool as it holds now, with the recovery class that is trusted."""
    return _tool(
        row,
        row.versions.get(number=row.version),
        row.policies.get(number=row.policy_version),
    )


def tools(rows: "QuerySet[Tool]") -> list[dict[str, Any]]:
    """The same of many, in the order of their names, by three statements."""
    found = list(rows.order_by("name"))
    versions = ToolVersion.objects.filter(tool__in=found, number=F("tool__version"))
    policies = Policy.objects.filter(tool__in=found, number=F("tool__policy_version"))
    version_of = {each.tool_id: each for each in versions}
    policy_of = {each.tool_id: each for each in policies}
    return [_tool(row, version_of[row.id], policy_of[row.id]) for row in found]


def _tool(row: Tool, version: ToolVersion, present: Policy) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.version,
        "executor": version.executor,
        "provider": version.provider or None,
        "description": version.description,
        "input_schema": version.input_schema,
        "effect_kinds": version.effect_kinds,
        "annotations_received": version.annotations,
        "has_probe": version.probes,
        "resumes_by_handle": version.handles,
        "recovery_class": present.recovery_class,
        "declared": present.declared,
        "policy_version": row.policy_version,
        "switched_off_at": instant(row.switched_off_at),
        "switched_off_grounds": row.switched_off_grounds or None,
    }


def switch(row: Switch) -> dict[str, Any]:
    """One press of a tool's switch."""
    return {"on": row.on, "by": row.person_name, "grounds": row.grounds, "at": instant(row.at)}


def policy(row: Policy) -> dict[str, Any]:
    """A policy version with its author, grounds and the linter's warnings."""
    return {
        "id": ids.shown("policy", row.id),
        "tool": row.tool.name,
        "version": row.number,
        "recovery_class": row.recovery_class,
        "declared": row.declared,
        "policy": row.document,
        "author": row.author_name,
        "grounds": row.grounds,
        "at": instant(row.at),
        "findings": [
            {"level": each.level, "code": each.code, "detail": each.sentence}
            for each in lint(row.call_policy)
        ],
    }
