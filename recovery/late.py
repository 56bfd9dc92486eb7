"""Late answers, once their call is settled: what each means, by the table of semantics, section 8.

The ledger keeps what comes from a lost fence and leaves a note (`Examination`); this pass judges
the notes of settled calls. It overwrites nothing: what contradicts a settlement opens an incident
with both attempts and the correction that it proposes, for a person.
"""

from dataclasses import dataclass
from uuid import UUID

from ledger.models import Evidence, Examination, Result, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.policies import CallPolicy
from ledger.vocabulary import (
    CallState,
    Effect,
    IncidentKind,
    LateMeaning,
    ProbeFinding,
    RecoveryClass,
    ResolutionAnswer,
)
from recovery import incidents
from recovery.matrix import RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """The facts about one late answer and its settled call.

    `is_result`: a result, not a probe's word. `is_the_result`: the very one that was adopted.
    `ruled_out`: somebody or a probe has ruled that its attempt had no effect.
    `other_attempt_did_it`: the call's result came from another attempt, which crossed too.
    """

    recovery_class: RecoveryClass
    policy: CallPolicy
    state: CallState
    effect: Effect
    finding: str
    is_result: bool
    adoptable: bool = True
    is_the_result: bool = False
    crossed: bool = True
    ruled_out: bool = False
    other_attempt_did_it: bool = False

    @property
    def repeats_are_one(self) -> bool:
        """Whether two executions are one effect: a key, or a flow that may be made anew."""
        rule = RULES[self.recovery_class]
        return rule.repeats_when_possible or self.policy.repeat_start


def meaning_of(late: Late) -> LateMeaning:
    """What a late answer means for its settled call. Pure."""
    if late.finding != ProbeFinding.HAPPENED:
        return LateMeaning.SAYS_NOTHING
    if late.is_result and not late.adoptable:
        return LateMeaning.OTHER_ARGUMENTS
    if late.ruled_out and late.crossed:
        return LateMeaning.CONTRADICTS
    if late.is_the_result:
        return LateMeaning.ADOPTED
    if late.effect is Effect.NONE:
        # A read changed nothing either way: its late result only comes too late.
        return LateMeaning.CONFIRMS if late.state is CallState.SUCCEEDED else _NOTHING
    if late.state is CallState.SUCCEEDED:
        twice = late.other_attempt_did_it and late.crossed and not late.repeats_are_one
        return LateMeaning.CONTRADICTS if twice else LateMeaning.CONFIRMS
    if late.state is CallState.FAILED and late.effect is Effect.HAPPENED:
        return LateMeaning.CONTRADICTS if late.is_result else LateMeaning.CONFIRMS
    return LateMeaning.CONTRADICTS if late.crossed else _NOTHING


_NOTHING = LateMeaning.SAYS_NOTHING


def unexamined(limit: int) -> list[tuple[UUID, UUID]]:
    """Late answers that nobody has judged although their call is settled, with that call."""
    # Served by `late_unexamined`, which holds only what nobody has looked at.
    return list(
        Examination.objects.filter(meaning="", evidence__call__settled_at__isnull=False)
        .order_by("evidence_id")
        .values_list("evidence_id", "evidence__call_id")[:limit]
    )


def examine(call: ToolCall, *, evidence_id: UUID) -> bool:
    """Judge one late answer. The caller holds the call's lock."""
    # Another watchdog may have judged it between our look and our lock.
    if not Examination.objects.filter(evidence=evidence_id, meaning="").exists():
        return False
    kept = Evidence.objects.select_related("attempt").get(id=evidence_id)
    late = _late(call, kept)
    meaning = meaning_of(late)
    Examination.objects.filter(evidence=evidence_id).update(meaning=meaning, at=ClockTimestamp())
    if meaning is LateMeaning.CONTRADICTS:
        _contradiction(call, kept, late)
    return True


def _late(call: ToolCall, kept: Evidence) -> Late:
    attempt = kept.attempt
    assert attempt is not None  # noqa: S101 what comes late comes from an attempt
    result = Result.objects.filter(call=call).first()
    by_it = result is not None and result.fence == attempt.fence
    return Late(
        recovery_class=RecoveryClass(call.recovery_class),
        policy=call.policy.call_policy,
        state=call.state,
        effect=call.effect,
        finding=kept.finding,
        is_result=kept.kind == "late_result",
        adoptable=kept.adoptable,
        is_the_result=by_it and result is not None and result.sha256 == kept.sha256,
        crossed=attempt.crossed_at is not None or kept.kind == "probe",
        ruled_out=attempt.disproved_at is not None,
        other_attempt_did_it=_other_attempt_did_it(call, attempt.fence, result),
    )


def _other_attempt_did_it(call: ToolCall, fence: int, result: Result | None) -> bool:
    if result is None or result.fence == fence:
        return False
    return call.attempts.filter(fence=result.fence, crossed_at__isnull=False).exists()


def _contradiction(call: ToolCall, kept: Evidence, late: Late) -> None:
    """Open the incident with both attempts and the correction that it proposes."""
    answer = "A late result" if late.is_result else "A probe that answered late"
    proposes_happened = call.effect is not Effect.HAPPENED or call.state is CallState.FAILED
    proposed = ResolutionAnswer.HAPPENED if proposes_happened else None
    told = kept.attempt.fence if kept.attempt else 0
    incidents.report(
        call,
        IncidentKind.CONTRADICTION,
        grounds=f"{answer} of attempt {told} says that the effect happened; the call is settled "
        f"as {call.state} with the effect {call.effect}. Nothing was overwritten.",
        facts={
            "evidence": kept.id.hex,
            "late_attempt": told,
            "attempts": list(
                call.attempts.filter(crossed_at__isnull=False)
                .order_by("fence")
                .values_list("fence", flat=True)
            ),
            "settled_as": str(call.state),
            "effect": str(call.effect),
            "proposed": str(proposed) if proposed else None,
        },
    )
