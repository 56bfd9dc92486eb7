"""Disputes: somebody does not believe a decision that is recorded (console, section 9).

What waits is stopped, and its incident stays open; where it was carried out the call keeps its
state, and an incident asks whether what is held shall be corrected. Either way both answers stand
side by side, and neither side decides: a third person does, or an admin. A dispute moves the
decision version, so nobody decides without having seen it.

Locks: call, incident, then appends.
"""

from uuid import UUID

from ledger import ids
from ledger.errors import LedgerError
from ledger.models import ToolCall
from ledger.permissions import Person, Right
from ledger.transactions import repeatable
from ledger.vocabulary import IncidentKind, ResolutionAnswer, ResolutionStage, spoken
from recovery import casefiles, corrections, incidents, resolutions, rulings, stages
from recovery.models import Dispute, Incident, Resolution, Step
from recovery.rulings import Wish

WAITS = (ResolutionStage.PENDING, ResolutionStage.REQUESTED)


class NotDisputable(LedgerError):
    """This decision cannot be disputed, or not by this person."""

    code = "not_disputable"
    sentence = "{why} Nothing was recorded."


@repeatable
def begin(*, resolution_id: UUID, wish: Wish, by: Person) -> Dispute:
    """Dispute a decision of somebody else's, with another answer and its grounds.

    Raises NotFound, PermissionMissing, LoginStale, and NotDisputable for one's own decision, for
    the same answer, and for what can no longer be stopped nor corrected.
    """
    resolution = resolutions.get(resolution_id=resolution_id, workspace_id=by.workspace_id)
    call = ToolCall.objects.locked(resolution.call_id)
    resolutions.need(by, Right.DECIDE, casefiles.of(call, None))
    # Whoever came first has ended it, carried it out or disputed it between our look and our lock.
    resolution = Resolution.objects.get(id=resolution.id)
    _refuse(resolution, wish, by)
    incident = _stopped(call, resolution, wish, by) or _opened_again(call, resolution, wish, by)
    return Dispute.objects.create(
        workspace_id=call.workspace_id, call=call, incident=incident, resolution=resolution,
        answer=wish.answer, then=wish.then, grounds=wish.grounds, by_id=by.id, by_name=by.name,
    )  # fmt: skip


def _refuse(resolution: Resolution, wish: Wish, by: Person) -> None:
    if resolution.by_id == by.id:
        raise NotDisputable(why="This is your own decision: take it back, or correct it.")
    if not is_another(resolution, wish):
        raise NotDisputable(why=f"You say the same as {resolution.by_name}.")
    if Dispute.objects.filter(resolution=resolution).exists():
        raise NotDisputable(why="This decision is disputed already: read both sides.")


def is_another(resolution: Resolution, wish: Wish) -> bool:
    """Whether this says another answer than the resolution, so that it can be disputed with."""
    return (wish.answer, wish.then) != (resolution.answer, resolution.then)


def _stopped(call: ToolCall, resolution: Resolution, wish: Wish, by: Person) -> Incident | None:
    """Stop a decision that still waits; its incident. None where nothing waits."""
    if stages.of(resolution) not in WAITS or resolution.incident_id is None:
        return None
    rows = Incident.objects.select_for_update(of=("self",))
    incident = rows.get(id=resolution.incident_id)
    resolutions.end_waiting(call, incident, resolution, grounds=f"Disputed: {wish.grounds}", by=by)
    Step.objects.create(
        incident=incident, rung="disputed", taken=True, rule="person",
        policy_version=call.policy.number, facts=_facts(resolution, wish, by),
        grounds=_sentence(resolution, wish, by),
    )  # fmt: skip
    return incident


def _opened_again(call: ToolCall, resolution: Resolution, wish: Wish, by: Person) -> Incident:
    """The incident that asks whether a settlement shall be corrected."""
    stage = stages.of(resolution)
    if stage is not ResolutionStage.CARRIED_OUT:
        word = spoken(stage)
        raise NotDisputable(why=f"This decision is {word}: nothing of it holds.")
    if not call.is_settled:
        raise NotDisputable(
            why=f"It is carried out and the call is {call.state} again. Decide about it when it "
            "asks for an answer."
        )
    if corrections.held_by(call) != resolution:
        raise NotDisputable(why="A later decision holds now: dispute that one.")
    return incidents.report(
        call, IncidentKind.CONTRADICTION, grounds=_sentence(resolution, wish, by),
        facts=_facts(resolution, wish, by),
    )  # fmt: skip


def _facts(resolution: Resolution, wish: Wish, by: Person) -> dict[str, str]:
    return {
        "by": by.name, "answer": str(wish.answer), "then": wish.then,
        "resolution": ids.shown("resolution", resolution.id),
    }  # fmt: skip


def _sentence(resolution: Resolution, wish: Wish, by: Person) -> str:
    said = rulings.in_words(wish.answer, wish.then)
    held = rulings.in_words(resolution.answer, resolution.then)
    return (
        f"{by.name} disputes what {resolution.by_name} recorded ({held}) and says {said}: "
        f"{wish.grounds}"
    )


def answer_of(text: str) -> tuple[ResolutionAnswer, str]:
    """An answer as forms send it, `did_not_happen:repeat`. Raises NotDisputable for none."""
    word, _, then = text.partition(":")
    if word not in list(ResolutionAnswer) or then not in ("", "repeat", "close"):
        raise NotDisputable(why="A dispute says another answer.")
    return ResolutionAnswer(word), then
