"""Corrections: what was settled on a wrong belief is superseded, never erased (R65).

State and effect of a settled call stay as they are; the verdict and the text that its agent reads
follow the latest correction. An agent that has read something else is told both. A correction
holds at once: it moves nothing outside, and the next one may supersede it in turn. Where the
policy asks for two people, it is made by somebody who may approve and did not decide before.

Locks: call, incident, then appends.
"""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from ledger import journal, kept_notices, notices, waiting
from ledger.errors import NotFound, refuse_unconfirmed
from ledger.journal import Move
from ledger.models import Attempt, Notice, Result, ToolCall
from ledger.notices import Told
from ledger.permissions import Person, Right
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    Effect,
    IncidentKind,
    RecoveryClass,
    ResolutionAnswer,
    ResolutionStage,
)
from recovery import casefiles, deeds, disputed, incidents, resolutions, rulings, stages
from recovery.models import Incident, Resolution
from recovery.refusals import NotEligible, SecondPersonRequired
from recovery.resolutions import Decision
from recovery.rulings import Crossing, Facts, Ruling, Wish

A = ResolutionAnswer
HOLDS = {
    Effect.HAPPENED: A.HAPPENED,
    Effect.DID_NOT_HAPPEN: A.DID_NOT_HAPPEN,
    Effect.POSSIBLE: A.ABANDON,
}
"""What a settlement says of the effect, as an answer."""

READ_CHARACTERS_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What a correction will do: the ruling, the text it corrects, the sentence about both."""

    facts: Facts
    ruling: Ruling
    supersedes: Resolution | None
    earlier: str = ""
    text: str = ""


def preview(*, call_id: UUID, decision: Decision, by: Person) -> Correction:
    """The very correction that `correct` would make now. Raises what it would refuse."""
    return _drawn_up(_call(call_id, by, lock=False), decision, by)


@repeatable
def correct(*, call_id: UUID, decision: Decision, by: Person) -> Resolution:
    """Supersede what holds of a settled call, or say that it stands; both go on its file."""
    call = _call(call_id, by, lock=True)
    correction = _drawn_up(call, decision, by)
    refuse_unconfirmed(correction.ruling.confirm, decision.confirm)
    if decision.wish.answer is A.DID_NOT_HAPPEN:
        deeds.write_unlocks(call)
    resolution = _write(call, correction, decision, by)
    journal.append([_corrected(call, resolution)])
    if correction.ruling.told is not None:
        _keep(call, correction, correction.ruling.told, resolution)
    stages.write(resolution, ResolutionStage.CARRIED_OUT, event_seq=call.seq)
    _close_contradictions(call, resolution)
    waiting.tell([call.id])
    return resolution


def _call(call_id: UUID, by: Person, *, lock: bool) -> ToolCall:
    rows = ToolCall.objects.filter(workspace=by.workspace_id, id=call_id)
    call = (rows.select_for_update(of=("self",)) if lock else rows).first()
    if call is None:
        raise NotFound(noun="call")
    return call


def _drawn_up(call: ToolCall, decision: Decision, by: Person) -> Correction:
    facts, wish = casefiles.of(call, None), decision.wish
    resolutions.need(by, Right.DECIDE, facts)
    disputed.refuse_party(disputed.of_call(call.id), by)
    earlier = held_by(call)
    _refuse_the_same_person(facts, earlier, by)
    if not facts.state.is_settled:
        raise NotEligible(why=f"The call is {facts.state}, not settled: it is resolved instead.")
    if why := _why_not(call, facts, wish):
        raise NotEligible(why=why)
    rulings.refuse_while_locked(facts, wish)
    resolutions.refuse_if_stale(facts.decision_version, call, decision.seen)
    rulings.refuse_without_evidence(facts, wish)
    ruling = rulings.levelled(facts, wish, _ruling(call, facts, wish))
    if ruling.told is None:
        return Correction(facts=facts, ruling=ruling, supersedes=earlier)
    read, size = _read(call)
    text = notices.correction(call=facts.call, earlier=read, now=ruling.told.text, size_bytes=size)
    return Correction(facts=facts, ruling=ruling, supersedes=earlier, earlier=read, text=text.text)


def held_by(call: ToolCall) -> Resolution | None:
    """The decision that holds: the last one that was carried out."""
    done = Resolution.objects.filter(call=call, events__kind=ResolutionStage.CARRIED_OUT)
    return done.order_by("-at").first()


def _refuse_the_same_person(facts: Facts, earlier: Resolution | None, by: Person) -> None:
    if facts.policy.second_person != "always":
        return
    if not by.may(Right.APPROVE):
        raise SecondPersonRequired(why="a correction is made by somebody who may approve")
    if earlier is not None and earlier.by_id == by.id:
        raise SecondPersonRequired(why="you made the decision that this would correct")


def holds(call: ToolCall, facts: Facts) -> ResolutionAnswer | None:
    """What is held of the effect now; None where nothing was begun."""
    corrected = (
        Resolution.objects.filter(call=call, is_correction=True)
        .exclude(answer=A.STANDS)
        .order_by("-at")
        .first()
    )
    return ResolutionAnswer(corrected.answer) if corrected else HOLDS.get(facts.effect)


def _why_not(call: ToolCall, facts: Facts, wish: Wish) -> str:
    present = holds(call, facts)
    if facts.recovery_class is RecoveryClass.READ_ONLY or present is None:
        return "Nothing was begun, so there is nothing to correct."
    if wish.answer is A.STANDS:
        return "" if _contradictions(call).exists() else "No finding contradicts the settlement."
    if wish.answer not in HOLDS.values() or wish.then or wish.error:
        return "A correction says happened, did_not_happen, abandon (cannot be known) or stands."
    if wish.answer is present:
        return f"'{present}' is what is held already."
    if wish.result is not None and facts.piece(wish.result) is None:
        return "The result named is no evidence of this call."
    return ""


def _ruling(call: ToolCall, facts: Facts, wish: Wish) -> Ruling:
    piece = facts.piece(wish.result) if wish.result else None
    told: dict[ResolutionAnswer, Told] = {
        A.HAPPENED: notices.happened_stated(
            piece.text if piece else None, piece.size_bytes if piece else None
        ),
        A.DID_NOT_HAPPEN: notices.render("denied_stated"),
        A.ABANDON: notices.render("abandoned"),
    }
    return Ruling(
        event="corrected",
        state=facts.state,
        effect=facts.effect,
        level=3,
        deed="Record: it stands" if wish.answer is A.STANDS else f"Correct: {wish.answer}",
        afterwards="The settlement stays; what is held and told of it changes. A further "
        "correction may follow.",
        told=told.get(wish.answer),
        model="" if wish.answer in told else "The model reads nothing new.",
        judged=_judged(call, facts) if wish.answer is A.DID_NOT_HAPPEN else None,
    )


def _judged(call: ToolCall, facts: Facts) -> Crossing | None:
    """The crossing that a denial judges; one that was denied before is judged again."""
    if facts.crossings:
        return rulings.judged_of(facts)
    last = Attempt.objects.filter(call=call, crossed_at__isnull=False).latest("fence")
    return casefiles.crossing(last, facts.policy.in_flight_grace_s)


def _read(call: ToolCall) -> tuple[str, int | None]:
    """What an agent reads of this call now, and the size of the whole in bytes."""
    if call.notice_seq is not None:
        return Notice.objects.get(call=call, seq=call.notice_seq).text, None
    result = Result.objects.filter(call=call).first()
    if result is not None:
        body = bytes(result.body[:READ_CHARACTERS_MAX])
        return body.decode("utf-8", "replace"), result.size_bytes
    told = notices.for_call(call)
    return told.text if told else str(call.error or call.state), None


def _write(call: ToolCall, correction: Correction, decision: Decision, by: Person) -> Resolution:
    wish, judged = decision.wish, correction.ruling.judged
    told = correction.ruling.told
    resolution = Resolution.objects.create(
        workspace_id=call.workspace_id,
        call=call,
        attempt_id=judged.attempt_id if judged else None,
        answer=wish.answer,
        result_id=wish.result,
        grounds=wish.grounds,
        decision_version=correction.facts.decision_version,
        level=correction.ruling.level,
        carry_out_after_s=0.0,
        is_correction=True,
        supersedes=correction.supersedes,
        template=told.template if told else "",
        template_version=told.version if told else 0,
        **resolutions.signature(by),
    )
    resolutions.back(resolution, correction.facts, wish)
    disputed.answer(call.id, resolution)
    return resolution


def _corrected(call: ToolCall, resolution: Resolution) -> Move:
    return Move(
        call=call,
        kind="corrected",
        by=Actor.OPERATOR,
        by_id=deeds.actor_id(resolution.by_id),
        facts={
            "resolution": resolution.id.hex,
            "answer": str(resolution.answer),
            "grounds": resolution.grounds,
            "supersedes": resolution.supersedes_id.hex if resolution.supersedes_id else "",
        },
    )


def _keep(call: ToolCall, correction: Correction, told: Told, resolution: Resolution) -> None:
    kept_notices.keep(
        call,
        told,
        answer=str(resolution.answer),
        earlier=correction.earlier,
        correction=correction.text,
    )


def _contradictions(call: ToolCall) -> "QuerySet[Incident]":
    return Incident.objects.filter(
        call=call, kind=IncidentKind.CONTRADICTION, closed_at__isnull=True
    )


def _close_contradictions(call: ToolCall, resolution: Resolution) -> None:
    """A correction, or a word that the settlement stands, answers what contradicted it."""
    for incident in _contradictions(call).select_for_update(of=("self",)):
        incidents.resolved(
            incident, by=resolution.by_name,
            grounds=f"{rulings.in_words(resolution.answer)}: {resolution.grounds}",
        )  # fmt: skip
