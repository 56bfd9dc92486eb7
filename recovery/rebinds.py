"""Binding a session anew: a person's act, on grounds, that fences whoever held it (R112).

One transaction raises the epoch, takes the fence of every live attempt of the session, and closes
what waits to touch a place that is the session's no longer. From its commit on, what the old
holder sends is refused: a submit by its epoch, a heartbeat or a settlement by its fence. That is
why neither claims nor heartbeats nor settlements look at an epoch (decision 0028).

It never changes an effect: an attempt past its boundary goes up the ladder, like any lost one.

Locks: session, then its open calls in the order of their ids, then those of recovery's decisions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from ledger import ids, interrupts, journal, kept_notices, notices, registered, unresolved, waiting
from ledger.bindings import PLACE
from ledger.calls import AT_REST
from ledger.conditions import Seen
from ledger.errors import Invalid, NotFound, PermissionMissing, VersionConflict
from ledger.journal import Move
from ledger.models import Session, SessionChange, ToolCall
from ledger.permissions import Person, Right
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    Effect,
    IncidentKind,
    InterruptEnd,
    Phase,
    spoken,
)
from recovery import acts, fences, incidents, losses, snapshots
from recovery.decisions import Act, Decision
from recovery.models import Incident

REBOUND = "rebound"
DRIFTED = "binding_drift"


class RebindStale(VersionConflict):
    """Somebody bound the session anew since it was read."""

    sentence = (
        "Epoch {given} was looked at, epoch {present} holds now: {changes}. Nothing was changed. "
        "Read the session again and decide anew."
    )


class RebindStaleMatch(RebindStale):
    """The same, where the epoch came in If-Match (RFC 9110)."""

    http = 412


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a session is to be bound to; None leaves a field as it is."""

    working_directory: str | None = None
    host: str | None = None
    model: str | None = None

    def changes(self, session: Session) -> dict[str, str]:
        """The fields that become others."""
        named = {name: getattr(self, name) for name in (*PLACE, "model")}
        return {
            name: value
            for name, value in named.items()
            if value is not None and value != getattr(session, name)
        }


@repeatable
def rebind(
    *,
    workspace_id: UUID,
    session_id: UUID,
    binding: Binding,
    grounds: str,
    seen: Seen,
    by: Person,
) -> Session:
    """Bind a session anew and fence who held it; return it with its new epoch.

    `seen` is the epoch that was looked at: of two operators at once one wins, and the other is
    told who and what. The same request again changes nothing. Raises PermissionMissing, NotFound,
    Invalid, PreconditionRequired and RebindStale.
    """
    if not by.may(Right.DECIDE):
        raise PermissionMissing(needed="the right to decide")
    if not grounds.strip():
        raise Invalid(detail="Every change needs grounds: say why in one sentence.")
    session = _locked(workspace_id, session_id)
    epoch = seen.needed("session", "epoch")
    if epoch != session.epoch:
        if _is_again(session, epoch, binding, grounds, by):
            return session
        raise _stale(session, epoch, seen)
    _bind(session, binding, grounds, by)
    return session


def _locked(workspace_id: UUID, session_id: UUID) -> Session:
    session = (
        Session.objects.select_for_update(no_key=True, of=("self",))
        .filter(workspace=workspace_id, id=session_id)
        .first()
    )
    if session is None:
        raise NotFound(noun="session", about=session_id)
    return session


def _rebinds_since(session: Session, epoch: int) -> list[SessionChange]:
    rows = SessionChange.objects.filter(session=session, kind=REBOUND).order_by("id")
    return [each for each in rows if each.facts["epoch"] > epoch]


def _is_again(session: Session, epoch: int, binding: Binding, grounds: str, by: Person) -> bool:
    """Whether this very request was committed, its answer lost."""
    since = _rebinds_since(session, epoch)
    return (
        len(since) == 1
        and session.epoch == epoch + 1
        and (since[0].by_id, since[0].grounds) == (str(by.id), grounds)
        and not binding.changes(session)
    )


def _stale(session: Session, epoch: int, seen: Seen) -> RebindStale:
    said = [_sentence(each) for each in _rebinds_since(session, epoch)]
    refusal = RebindStaleMatch if seen.matched else RebindStale
    return refusal(
        given=epoch,
        present=session.epoch,
        changes="; ".join(said[-5:]) or "it was never shown",
        current={"epoch": session.epoch, "etag": f'"{session.epoch}"', "changes": said},
    )


def _sentence(change: SessionChange) -> str:
    fields = ", ".join(spoken(each) for each in change.facts["changed"]) or "nothing else"
    return f"{change.by_name} raised it at {change.at:%Y-%m-%d %H:%M:%S} UTC and changed {fields}"


def _bind(session: Session, binding: Binding, grounds: str, by: Person) -> None:
    changes = binding.changes(session)
    changed = {name: [getattr(session, name), new] for name, new in changes.items()}
    for name, new in changes.items():
        setattr(session, name, new)
    session.epoch += 1
    session.save(update_fields=["epoch", *changed])
    moved = [name for name in PLACE if name in changed]
    became = _fence(session, moved, by)
    SessionChange.objects.create(
        workspace_id=session.workspace_id,
        session=session,
        kind=REBOUND,
        by_id=str(by.id),
        by_name=by.name,
        grounds=grounds,
        facts={"epoch": session.epoch, "changed": changed, "calls": became},
    )
    _resolve(session, grounds, by)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a re-bind would do now: the fields it changes, whom it fences, what it does not run."""

    changes: Mapping[str, str]
    fenced: Sequence[ToolCall]
    not_run: Sequence[ToolCall]
    left: Sequence[ToolCall]


def foresee(session: Session, binding: Binding) -> Foreseen:
    """Look at what `rebind` would do, by the same rules; nothing is locked or changed."""
    changes = binding.changes(session)
    moved = [name for name in PLACE if name in changes]
    open_calls = list(
        ToolCall.objects.open()
        .filter(unresolved.owned_by(session.id))
        .select_related("tool_version")
        .order_by("id")
    )
    held = fences.held(each.id for each in open_calls)
    fenced = [each for each in open_calls if each.id in held]
    rest = [each for each in open_calls if each.id not in held]
    # A call that loses its fence is at rest afterwards, and then waits for the old place too.
    not_run = [each for each in rest if moved and _waits_for_the_old_place(each)]
    return Foreseen(changes, fenced, not_run, [each for each in rest if each not in not_run])


def _fence(session: Session, moved: list[str], by: Person) -> dict[str, list[str]]:
    """Take the fences, then close what waits to touch the old place; what became of which call."""
    became: dict[str, list[str]] = {"fenced": [], "not_run": []}
    # A claim that is under way holds its call: it is waited for here, and fenced.
    found = ToolCall.objects.open().filter(unresolved.owned_by(session.id)).order_by("id")
    for call in list(found.select_for_update(of=("self",))):
        if losses.lose(call, Cause.REBOUND):
            became["fenced"].append(ids.shown("call", call.id))
        if moved and _waits_for_the_old_place(call):
            _not_run(call, moved[0], by)
            became["not_run"].append(ids.shown("call", call.id))
    return became


def _waits_for_the_old_place(call: ToolCall) -> bool:
    """Whether a call at rest would yet touch files or subprocesses where it no longer belongs.

    An interrupt inside or after the tool has an effect behind it: that call goes on.
    """
    if (
        call.is_settled
        or call.state not in AT_REST
        or registered.is_remote(call.tool_version.executor, call.tool_version.effect_kinds)
    ):
        return False
    if call.state is CallState.PAUSED:
        past = call.interrupts.filter(ended_at__isnull=True).exclude(phase=Phase.BEFORE_TOOL)
        return not past.exists()
    return True


def _not_run(call: ToolCall, field: str, by: Person) -> None:
    if call.effect is Effect.POSSIBLE:
        _up_the_ladder(call)
        return
    facts = {"field": field, "reason": DRIFTED}
    journal.append(
        [
            Move(
                call=call, kind="cancelled", by=Actor.OPERATOR, by_id=str(by.id), facts=facts,
                columns={"reason": DRIFTED},
            )
        ]
    )  # fmt: skip
    interrupts.end([call.id], ended_as=InterruptEnd.WITHDRAWN, by=str(Actor.OPERATOR),
                   by_id=str(by.id))  # fmt: skip
    kept_notices.keep(call, notices.render(DRIFTED, field=spoken(field)))
    waiting.tell([call.id])


def _up_the_ladder(call: ToolCall) -> None:
    """What an earlier attempt did is not known, and a repeat would do it elsewhere."""
    call.cause = call.cause or Cause.REBOUND
    case, _ = snapshots.of(call)
    acts.carry_out(
        call,
        case,
        Decision(
            act=Act.INTERRUPT,
            rule=case.rule.code,
            grounds="The session was bound to another place while an effect is possible.",
        ),
    )


def _resolve(session: Session, grounds: str, by: Person) -> None:
    """The incidents on the session's binding end with it."""
    for incident in Incident.objects.select_for_update(of=("self",)).filter(
        session=session, kind=IncidentKind.STALE_BINDING, closed_at__isnull=True
    ):
        incidents.resolved(incident, by=by.name, grounds=grounds, rule=REBOUND)
