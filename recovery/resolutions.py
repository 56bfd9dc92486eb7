"""Resolutions: recorded at once, carried out after their delay, taken back until then.

`record` writes what a person decided; the call moves only when it is carried out, by the watchdog
or, without a delay, in the same transaction. Everything is looked at again then: what moved the
call meanwhile has overtaken the decision, and says so. Every verb refuses in the order of
semantics, section 8, rule 2, and writes nothing when it refuses.

Locks: call, incident, then appends.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from ledger import ids, journal, permissions, secrets
from ledger.conditions import Seen
from ledger.errors import LedgerError, NotFound, PermissionMissing, refuse_unconfirmed
from ledger.handles import HandleToStore
from ledger.journal import Move
from ledger.models import ToolCall
from ledger.permissions import Person, Right
from ledger.transactions import repeatable
from ledger.vocabulary import Actor, IncidentKind, ResolutionAnswer, ResolutionStage, spoken
from recovery import casefiles, changes, deeds, disputed, rulings, stages
from recovery.models import BulkRow, Dispute, Incident, Resolution, ResolutionEvidence
from recovery.refusals import (
    DecisionStale,
    DecisionStaleMatch,
    DecisionVersionMissing,
    NotEligible,
    NotPending,
    SecondPersonRequired,
    call_or_refuse,
)
from recovery.rulings import REQUEST_LIVES_S, Facts, Ruling, Wish

MOVED = "The file moved before a second person approved it."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's decision as it is sent: the wish, what was looked at, what was typed."""

    wish: Wish
    seen: Seen = field(default_factory=Seen)
    confirm: str = ""
    handle: HandleToStore | None = None
    longer_delay_s: float = 0.0
    bulk_row: BulkRow | None = None


# Preview and record


def preview(*, incident_id: UUID, decision: Decision, by: Person) -> tuple[Facts, Ruling]:
    """The very ruling that `record` would follow now. Raises what `record` would refuse."""
    call, incident = _read(incident_id, by, lock=False)
    return _ruled(call, incident, decision, by)


@repeatable
def record(*, incident_id: UUID, decision: Decision, by: Person) -> Resolution:
    """Record a decision on the call of an incident; without a delay it is carried out at once."""
    call, incident = _read(incident_id, by, lock=True)
    facts, ruling = _ruled(call, incident, decision, by)
    if not decision.bulk_row:
        refuse_unconfirmed(ruling.confirm, decision.confirm)
    delay_s = max(ruling.delay_s, decision.longer_delay_s)
    if incident.pending is not None:  # a request that died when the file moved
        stages.end(incident, ResolutionStage.LAPSED, grounds=MOVED)
    if ruling.denies:
        deeds.write_unlocks(call)
    resolution = _write(call, incident, decision, facts, ruling, by, delay_s=delay_s)
    journal.append([_decided(call, resolution)])
    if ruling.second_person:
        stages.await_until(incident, resolution, REQUEST_LIVES_S)
    elif delay_s:
        stages.await_until(incident, resolution, delay_s)
    else:
        deeds.carry_out(call, incident, resolution, ruling, decision.handle)
    return resolution


def _read(incident_id: UUID, by: Person, *, lock: bool) -> tuple[ToolCall, Incident]:
    """The call and its incident, both locked if asked, within the person's workspace."""
    rows = Incident.objects.filter(workspace=by.workspace_id)
    found = rows.filter(id=incident_id).values_list("call_id", flat=True)[:1]
    if not found:
        raise NotFound(noun="incident")
    call_id = call_or_refuse(found[0])
    if not lock:
        return ToolCall.objects.get(id=call_id), rows.select_related("pending").get(id=incident_id)
    call = ToolCall.objects.locked(call_id)
    return call, rows.select_for_update(of=("self",)).get(id=incident_id)


def _ruled(
    call: ToolCall, incident: Incident, decision: Decision, by: Person
) -> tuple[Facts, Ruling]:
    facts = casefiles.of(call, incident, decision.handle)
    return facts, ruled(facts, call, incident, decision, by)


def ruled(
    facts: Facts, call: ToolCall, incident: Incident, decision: Decision, by: Person
) -> Ruling:
    """What a decision does now. Raises whatever speaks against it, permanent reasons first."""
    need(by, Right.DECIDE, facts)
    disputed.refuse_party(disputed.of_call(call.id), by)
    rulings.refuse_unless_pending(facts)
    refuse_unless_asked(incident)
    rulings.refuse_unless_eligible(facts, decision.wish)
    rulings.refuse_while_locked(facts, decision.wish)
    refuse_if_stale(facts.decision_version, call, decision.seen)
    rulings.refuse_without_evidence(facts, decision.wish)
    return rulings.drawn_up(facts, decision.wish)


def refuse_unless_asked(incident: Incident) -> None:
    """Raise NotEligible where this incident asks nobody to decide about its call."""
    if incident.kind is not IncidentKind.RECOVERY:
        raise NotEligible(why=f"An incident of the kind {incident.kind} asks for no such decision.")
    if incident.closed_at is not None:
        raise NotEligible(why="This incident is closed: nobody is asked any more.")


def need(by: Person, right: Right, facts: Facts) -> None:
    """Raise PermissionMissing or LoginStale: the role, then for a side effect a fresh login."""
    need_right(by, right)
    need_fresh_login(by, has_effect=facts.has_effect)


def need_right(by: Person, right: Right) -> None:
    """Raise PermissionMissing where no role of the person has this right."""
    if not by.may(right):
        raise PermissionMissing(needed=f"the right to {spoken(right)}")


def need_fresh_login(by: Person, *, has_effect: bool) -> None:
    """Raise LoginStale where a side effect is decided and the login is old (S7)."""
    if has_effect:
        permissions.need_fresh_login(by)


def refuse_if_stale(present: int, call: ToolCall, seen: Seen) -> None:
    """Raise DecisionStale with what changed and who, unless the present version was looked at."""
    if seen.version is None:
        raise DecisionVersionMissing(noun="incident", member="decision_version")
    if seen.version == present:
        return
    since = changes.of(call.id)[max(0, seen.version - 1) :]
    stale = DecisionStaleMatch if seen.matched else DecisionStale
    raise stale(
        given=seen.version,
        present=present,
        changes="; ".join(each.sentence for each in since[-5:]) or "it was never shown",
        current={"decision_version": present, "etag": f'"{present}"',
                 "changes": [each.sentence for each in since]},
    )  # fmt: skip


def _write(
    call: ToolCall, incident: Incident, decision: Decision, facts: Facts, ruling: Ruling,
    by: Person, *, delay_s: float,
) -> Resolution:  # fmt: skip
    wish, handle = decision.wish, decision.handle
    resolution = Resolution.objects.create(
        workspace_id=call.workspace_id,
        call=call,
        incident=incident,
        attempt_id=ruling.judged.attempt_id if ruling.judged else None,
        answer=wish.answer,
        then=wish.then,
        result_id=wish.result,
        error=wish.error,
        handle_kind=handle.kind if handle else "",
        handle_endpoint=handle.endpoint if handle else "",
        handle_encrypted=secrets.encrypt(handle.value) if handle else None,
        grounds=wish.grounds,
        decision_version=facts.decision_version,
        level=ruling.level,
        carry_out_after_s=delay_s,
        needs_second_person=ruling.second_person,
        template=ruling.told.template if ruling.told else "",
        template_version=ruling.told.version if ruling.told else 0,
        bulk_row=decision.bulk_row,
        **signature(by),
    )
    back(resolution, facts, wish)
    disputed.answer(call.id, resolution)
    return resolution


def signature(by: Person) -> dict[str, Any]:
    """Who decides: kept with the decision, since names, roles and logins change (I36)."""
    return {
        "by_id": by.id,
        "by_name": by.name,
        "by_roles": sorted(by.roles),
        "login_age_s": by.login_age_s,
    }


def back(resolution: Resolution, facts: Facts, wish: Wish) -> None:
    """Link the evidence that was named, as far as it lies on this call's file."""
    known = {each.id for each in facts.evidence}
    ResolutionEvidence.objects.bulk_create(
        ResolutionEvidence(resolution=resolution, evidence_id=each)
        for each in dict.fromkeys(wish.evidence)
        if each in known
    )


def _decided(call: ToolCall, resolution: Resolution) -> Move:
    return Move(
        call=call,
        kind="decided",
        by=Actor.OPERATOR,
        by_id=deeds.actor_id(resolution.by_id),
        facts={
            "resolution": resolution.id.hex,
            "answer": str(resolution.answer),
            "then": resolution.then,
            "grounds": resolution.grounds,
        },
    )


# Taking back and approving


def get(*, resolution_id: UUID, workspace_id: UUID) -> Resolution:
    """One resolution of a workspace. Raises NotFound."""
    found = Resolution.objects.filter(workspace=workspace_id, id=resolution_id).first()
    if found is None:
        raise NotFound(noun="resolution")
    return found


def _waiting(
    resolution_id: UUID, by: Person, right: Right
) -> tuple[ToolCall, Incident, Resolution, Facts]:
    """A resolution that still waits on its incident, locked. Raises NotPending."""
    resolution = get(resolution_id=resolution_id, workspace_id=by.workspace_id)
    if resolution.incident_id is None:
        raise NotPending(stage=stages.of(resolution), instead="Only a new correction can follow.")
    call, incident = _read(resolution.incident_id, by, lock=True)
    facts = casefiles.of(call, incident)
    need(by, right, facts)
    if incident.pending_id != resolution.id:
        stage = stages.of(resolution)
        done = stage is ResolutionStage.CARRIED_OUT
        instead = "Only a correction can follow." if done else "Read the incident."
        raise NotPending(stage=spoken(stage), instead=instead)
    return call, incident, resolution, facts


@repeatable
def take_back(*, resolution_id: UUID, grounds: str, by: Person) -> Resolution:
    """Take a decision back before it is carried out. Raises NotPending when it is too late."""
    call, incident, resolution, _ = _waiting(resolution_id, by, Right.DECIDE)
    end_waiting(call, incident, resolution, grounds=grounds, by=by)
    return resolution


def end_waiting(
    call: ToolCall, incident: Incident, resolution: Resolution, *, grounds: str, by: Person
) -> None:
    """End a decision that waits, by a person's word, under the locks of call and incident."""
    journal.append(
        [
            Move(
                call=call,
                kind="taken_back",
                by=Actor.OPERATOR,
                by_id=deeds.actor_id(by.id),
                facts={"resolution": resolution.id.hex, "grounds": grounds},
            )
        ]
    )
    stages.end(incident, ResolutionStage.TAKEN_BACK, by=by, grounds=grounds)


@repeatable
def approve(*, resolution_id: UUID, yes: bool, grounds: str, seen: Seen, by: Person) -> Resolution:
    """Be the second person: a yes starts the delivery delay, a no ends the request.

    Raises SecondPersonRequired for whoever recorded it, admins included.
    """
    call, incident, resolution, facts = _waiting(resolution_id, by, Right.APPROVE)
    refuse_unless_for(by, resolution)
    refuse_if_stale(facts.decision_version, call, seen)
    refuse_if_dead(resolution)
    if not yes:
        stages.end(incident, ResolutionStage.DECLINED, by=by, grounds=grounds)
        return resolution
    stages.write(resolution, ResolutionStage.APPROVED, by=by, grounds=grounds)
    stages.await_until(incident, resolution, resolution.carry_out_after_s)
    if not resolution.carry_out_after_s:
        _carry_out(call, incident)
    return resolution


def refuse_unless_for(by: Person, resolution: Resolution) -> None:
    """Raise SecondPersonRequired for whoever recorded it, NotPending where nobody is asked."""
    if by.id == resolution.by_id:
        raise SecondPersonRequired(why="you recorded this yourself")
    stage = stages.of(resolution)
    if stage is ResolutionStage.PENDING:
        raise NotPending(stage="approved", instead="It can be taken back until it is delivered.")
    if stage is not ResolutionStage.REQUESTED:
        word = spoken(stage)
        raise NotPending(stage=word, instead="Decide anew on what is known now.")


def refuse_if_dead(resolution: Resolution) -> None:
    """Raise NotPending for a request whose file has moved since it was recorded."""
    if casefiles.is_dead_request(resolution):
        raise NotPending(stage="lapsed", instead=f"{MOVED} Decide anew on what is known now.")


def lapse(call: ToolCall) -> None:
    """End a request for a second person that died because the file moved; under the call's lock."""
    for incident in Incident.objects.filter(call=call, pending__isnull=False):
        if incident.pending is not None and casefiles.is_dead_request(incident.pending):
            stages.end(incident, ResolutionStage.LAPSED, grounds=MOVED)


# Carrying out


def carry_out_due(limit: int = 200) -> int:
    """Carry out what was recorded and not taken back in time; return how many were ended.

    One transaction each. What somebody holds is skipped and comes with the next sweep.
    """
    with connection.cursor() as cursor:
        # Served by the partial index `incident_pending`.
        cursor.execute(
            "SELECT call_id, id FROM recovery_incident WHERE pending_until <= clock_timestamp() "
            "ORDER BY pending_until LIMIT %s",
            [limit],
        )
        due: list[tuple[UUID, UUID]] = cursor.fetchall()
    return sum(_guarded(call_id, incident_id) for call_id, incident_id in due)


def _guarded(call_id: UUID, incident_id: UUID) -> bool:
    try:
        return _carry_out_one(call_id, incident_id)
    except Exception:
        if connection.connection is None or connection.connection.closed:
            raise
        # One decision that cannot be carried out must not hold up all others.
        log.exception("watchdog.resolution_failed call=%s incident=%s", call_id, incident_id)
        return False


@transaction.atomic
def _carry_out_one(call_id: UUID, incident_id: UUID) -> bool:
    locked = ToolCall.objects.select_for_update(skip_locked=True, of=("self",))
    call = locked.filter(id=call_id).first()
    if call is None:
        return False
    # Somebody may have taken it back between our look and our lock.
    incident = (
        Incident.objects.select_for_update(of=("self",))
        .extra(where=["pending_until <= clock_timestamp()"])
        .filter(id=incident_id)
        .first()
    )
    if incident is None:
        return False
    _carry_out(call, incident)
    return True


def _carry_out(call: ToolCall, incident: Incident) -> None:
    resolution = incident.pending
    assert resolution is not None  # noqa: S101 a date without a decision is refused by PostgreSQL
    if stages.of(resolution) is ResolutionStage.REQUESTED:
        dead = casefiles.is_dead_request(resolution)
        grounds = MOVED if dead else "Nobody approved it in time."
        stages.end(incident, ResolutionStage.LAPSED, grounds=grounds)
        return
    wish, handle = wish_of(resolution), handle_of(resolution)
    incident.pending = None  # it is not in its own way
    try:
        ruling = rulings.rule(casefiles.of(call, incident, handle), wish)
    except LedgerError as refusal:
        incident.pending = resolution
        stages.end(incident, ResolutionStage.OVERTAKEN, grounds=str(refusal))
        return
    deeds.carry_out(call, incident, resolution, ruling, handle)


def wish_of(resolution: Resolution) -> Wish:
    """What was wished for, as it was recorded."""
    return Wish(
        answer=ResolutionAnswer(resolution.answer),
        then=resolution.then,
        grounds=resolution.grounds,
        evidence=tuple(resolution.backing.values_list("evidence_id", flat=True)),
        result=resolution.result_id,
        error=resolution.error,
        handle=resolution.handle_encrypted is not None,
    )


def handle_of(resolution: Resolution) -> HandleToStore | None:
    """The handle that was pasted, if one was."""
    stored = resolution.handle_encrypted
    if stored is None:
        return None
    return HandleToStore(
        value=secrets.decrypt(stored),
        kind=resolution.handle_kind,
        endpoint=resolution.handle_endpoint,
    )


def says_the_same(resolution: Resolution, decision: Decision) -> bool:
    """Whether a decision is what was recorded; its grounds and evidence may be others."""
    recorded = _said(wish_of(resolution), handle_of(resolution))
    return recorded == _said(decision.wish, decision.handle)


def _said(wish: Wish, handle: HandleToStore | None) -> tuple[Any, ...]:
    return wish.answer, wish.then, wish.result, wish.error, handle


# What may be answered


@dataclass(frozen=True, slots=True)
class Offer:
    """An answer as it is offered to a person: allowed now, or why not."""

    answer: ResolutionAnswer
    then: str
    allowed: bool
    code: str = ""
    why: str = ""
    current: Any = None


def offers(call: ToolCall, incident: Incident, by: Person) -> list[Offer]:
    """Every answer, allowed or with the reason why not; evidence and version come with the form."""
    facts, dispute = casefiles.of(call, incident), disputed.of_call(call.id)
    return [
        _offered(facts, incident, dispute, Wish(answer=answer, then=then), by)
        for answer, then in rulings.OFFERED
    ]


def _offered(
    facts: Facts, incident: Incident, dispute: Dispute | None, wish: Wish, by: Person
) -> Offer:
    checks: tuple[Callable[[], None], ...] = (
        lambda: need_right(by, Right.DECIDE),
        lambda: disputed.refuse_party(dispute, by),
        lambda: rulings.refuse_unless_pending(facts),
        lambda: refuse_unless_asked(incident),
        lambda: rulings.refuse_unless_eligible(facts, wish),
        lambda: rulings.refuse_while_locked(facts, wish),
        # Last: what no login mends is said first.
        lambda: need_fresh_login(by, has_effect=facts.has_effect),
    )
    try:
        for check in checks:
            check()
    except LedgerError as refusal:
        why, current = str(refusal), refusal.facts.get("current")
        return Offer(wish.answer, wish.then, False, refusal.code, why, current)
    return Offer(wish.answer, wish.then, True)


def shown(resolution: Resolution) -> str:
    """The resolution's id as the API shows it."""
    return ids.shown("resolution", resolution.id)
