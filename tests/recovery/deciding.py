"""Deciding in tests: an ambiguous call, evidence on its file, and a decision by Olga."""

from typing import Any
from uuid import UUID

from django.db import connection

from ledger.conditions import Seen
from ledger.handles import HandleToStore
from ledger.models import Evidence, ToolCall, Turn
from ledger.permissions import Person
from ledger.vocabulary import ResolutionAnswer
from recovery import changes, resolutions, statements
from recovery.models import Incident, Resolution
from recovery.resolutions import Decision
from recovery.rulings import Wish
from tests import builders
from tests.cast import Acme, as_decider

AT_ONCE = {"delivery_delay_s": 0}


def ambiguous(
    acme: Acme, recovery_class: str = "side_effect", *, turn: Turn | None = None, **policy: Any
) -> ToolCall:
    """An ambiguous call whose lost attempt is proven dead, its in-flight grace over."""
    place = {"turn_id": turn.id, "session_id": turn.session_id} if turn else {}
    if recovery_class == "idempotent_write":  # with attempts left it would repeat by itself
        policy.setdefault("retry", {"attempts": 1})
    call = builders.a_call(acme, "ambiguous", recovery_class, policy=policy, **place)
    builders.unlock_denial(call)
    return builders.fresh(call)


def incident_of(call: ToolCall) -> Incident:
    """The recovery incident opened last."""
    return Incident.objects.filter(call=call, kind="recovery").latest("opened_at")


def version_of(call: ToolCall) -> int:
    return changes.version_after(changes.of(call.id))


def found(
    call: ToolCall, finding: str, by: Person, *, kind: str = "checked", **more: Any
) -> Evidence:
    """Put on the file what was found outside, with a number to look it up by."""
    if kind != "statement":
        more.setdefault("reference", "sent/4711")
    return statements.state_evidence(
        call_id=call.id,
        found=statements.Found(
            kind=kind, finding=finding, message="Looked at: the provider's list.", **more
        ),
        by=by,
    )


def a_decision(
    call: ToolCall,
    answer: str,
    then: str = "",
    *,
    evidence: tuple[UUID, ...] = (),
    result: UUID | None = None,
    error: str = "",
    grounds: str = "The provider's list says so.",
    handle: HandleToStore | None = None,
    version: int | None = None,
    confirm: str | None = None,
) -> Decision:
    """A decision that looked at the present version and is confirmed, unless said otherwise."""
    return Decision(
        wish=Wish(
            answer=ResolutionAnswer(answer),
            then=then,
            grounds=grounds,
            evidence=evidence,
            result=result,
            error=error,
            handle=handle is not None,
        ),
        seen=Seen(version=version_of(call) if version is None else version),
        confirm=f"{call.tool} 1" if confirm is None else confirm,
        handle=handle,
    )


def decide(
    acme: Acme,
    call: ToolCall,
    answer: str,
    then: str = "",
    *,
    by: Person | None = None,
    **more: Any,
) -> Resolution:
    """Decide as Olga; a statement about an effect rests on evidence that she puts there first."""
    by = by or as_decider(acme.olga)
    if answer in ("happened", "did_not_happen") and "evidence" not in more:
        more["evidence"] = (found(call, answer, by).id,)
    decision = a_decision(call, answer, then, **more)
    return resolutions.record(incident_id=incident_of(call).id, decision=decision, by=by)


def delay_over(call: ToolCall) -> None:
    """Let whatever waits on the call's incident have fallen due, and the watchdog sweep it."""
    fall_due(call)
    resolutions.carry_out_due()


def fall_due(call: ToolCall) -> None:
    """Let whatever waits on the call's incident have fallen due."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE recovery_incident SET pending_until = clock_timestamp() - interval '1 second' "
            "WHERE call_id = %s AND pending_until IS NOT NULL",
            [call.id],
        )
        assert cursor.rowcount == 1, "nothing waits on this call"
