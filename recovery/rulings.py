"""What an answer of a person would do to a call, from facts alone. Pure.

Preview and deed ask the same function, so what was shown is what is done (R135). A ruling says
what is called outside, what changes in the ledger, what the model will be told word for word, and
what happens next. Refusals come in the order of semantics, section 8, rule 2. Nothing here reads
a row or a clock; nothing repeats an effect that is not disproved (I2).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from ledger import notices
from ledger.errors import AlreadySettled
from ledger.notices import Told
from ledger.policies import CallPolicy
from ledger.vocabulary import (
    CallState,
    Cause,
    Deadline,
    Effect,
    RecoveryClass,
    ResolutionAnswer,
    spoken,
)
from recovery.refusals import (
    AlreadyDecided,
    DenialLocked,
    EvidenceRequired,
    NotEligible,
)

REQUEST_LIVES_S = 30 * 60
"""How long a request for a second person lives, in seconds (console, section 9)."""
STATEMENT = "statement"

A, C, D = ResolutionAnswer, RecoveryClass, Deadline
UNDECIDED = frozenset({CallState.INTERRUPTED, CallState.AMBIGUOUS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """An attempt that crossed and that nothing has disproved yet. Instants are the database's."""

    attempt_id: UUID
    fence: int
    lease_until: datetime
    dead_proof: str = ""
    unlocks_at: datetime | None = None
    dead_by: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One piece of evidence on the file. `text` is what may be quoted to the model."""

    id: UUID
    kind: str
    finding: str
    by: str = ""
    adoptable: bool = False
    text: str = ""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision that is recorded and not yet carried out."""

    id: UUID
    by: str
    answer: str
    at: datetime
    is_request: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that an answer depends on, read in one instant `now` under the call's lock."""

    now: datetime
    call: str
    tool: str
    recovery_class: RecoveryClass
    policy: CallPolicy
    state: CallState
    effect: Effect
    cause: Cause | None = None
    attempts_used: int = 0
    attempts_allowed: int = 1
    fence: int = 0
    queue: str = "effects"
    effect_key: str = ""
    arguments: str = "{}"
    has_probe: bool = False
    takes_handles: bool = False
    handle_of_another: bool = False
    armed: frozenset[Deadline] = frozenset()
    crossings: tuple[Crossing, ...] = ()
    evidence: tuple[Piece, ...] = ()
    decided: Decided | None = None
    decision_version: int = 1

    @property
    def has_effect(self) -> bool:
        """Whether a repeat may do harm that no key prevents."""
        return self.recovery_class is C.SIDE_EFFECT

    def piece(self, id_: UUID) -> Piece | None:
        return next((each for each in self.evidence if each.id == id_), None)


def in_words(answer: str, then: str = "") -> str:
    """A word of ours as a person says it, with what follows: `did not happen, close`."""
    return spoken(", ".join(filter(None, (answer, then))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person wants. `handle` says that one is given, not which: it may be a secret."""

    answer: ResolutionAnswer
    then: str = ""
    grounds: str = ""
    evidence: tuple[UUID, ...] = ()
    result: UUID | None = None
    error: str = ""
    handle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What will be done. `arm` in seconds; `columns` of the call; `told` word for word."""

    event: str
    state: CallState
    effect: Effect
    level: int
    deed: str
    afterwards: str
    confirm: str = ""
    outside: str = "Nothing will be called."
    request: Mapping[str, Any] | None = None
    cause: Cause | None = None
    arm: Mapping[Deadline, float] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    told: Told | None = None
    model: str = ""
    judged: Crossing | None = None
    adopts: UUID | None = None
    delay_s: float = 0.0
    second_person: bool = False

    @property
    def keeps_text(self) -> bool:
        """Whether the text is fixed with the settlement, or follows from the call's row."""
        return self.told is not None and self.state.is_settled

    @property
    def denies(self) -> bool:
        return self.effect is Effect.DID_NOT_HAPPEN


def rule(facts: Facts, wish: Wish) -> Ruling:
    """What an answer does now. Raises the first refusal, permanent reasons first."""
    refuse_unless_pending(facts)
    refuse_unless_eligible(facts, wish)
    refuse_while_locked(facts, wish)
    return drawn_up(facts, wish)


def drawn_up(facts: Facts, wish: Wish) -> Ruling:
    """The ruling of an answer that may be given."""
    return replace(
        levelled(facts, wish, _RULES[wish.answer].draw(facts, wish)),
        delay_s=facts.policy.delivery_delay_s,
        second_person=facts.policy.second_person == "always",
    )


def levelled(facts: Facts, wish: Wish, ruling: Ruling) -> Ruling:
    """The ruling with its confirmation level, and what must be typed for the highest."""
    level = _level(facts, wish, ruling)
    return replace(ruling, level=level, confirm=f"{facts.tool} 1" if level >= 4 else "")


# Refusals


def refuse_unless_pending(facts: Facts) -> None:
    """Raise AlreadySettled, AlreadyDecided or NotEligible where no decision is waited for."""
    if facts.state.is_settled:
        raise AlreadySettled(
            state=facts.state, current={"state": facts.state, "effect": facts.effect}
        )
    if facts.decided is not None:
        raise AlreadyDecided(
            by=facts.decided.by,
            answer=facts.decided.answer,
            at=f"{facts.decided.at:%H:%M:%S} UTC",
            what="waits for a second person" if facts.decided.is_request else "is being delivered",
            current={"resolution": f"res_{facts.decided.id.hex}"},
        )
    if facts.state not in UNDECIDED:
        raise NotEligible(why=f"The call is {in_words(facts.state)}: nobody is asked.")


def refuse_unless_eligible(facts: Facts, wish: Wish) -> None:
    """Raise NotEligible where this answer does not exist for such a call."""
    rules = _RULES.get(wish.answer)
    if rules is None:
        raise NotEligible(why=f"'{wish.answer}' is no answer to an open question.")
    if why := _why_not(facts, wish, rules):
        raise NotEligible(why=why)


def _why_not(facts: Facts, wish: Wish, rules: "Rules") -> str:
    if facts.effect is not Effect.POSSIBLE:
        return "What is known of its effect is known for sure, so recovery goes on by itself."
    if facts.state not in rules.states:
        return f"The call is {in_words(facts.state)}; this answer is for one that is ambiguous."
    if facts.recovery_class not in rules.classes:
        return f"{rules.only} This one is of the class {in_words(facts.recovery_class)}."
    if wish.then not in rules.then:
        return f"'then' is {' or '.join(map(repr, rules.then))} with this answer."
    if wish.answer in AGAINST_PROOF and (proof := _proof_of(facts)):
        return f"{proof} Recovery settles with it, or adopt it."
    return rules.unless(facts, wish)


def _proof_of(facts: Facts) -> str:
    """What the machine has in hand that proves the effect; a person's word does not undo it.

    Looked at again when a decision is carried out: a late result that came during its delay must
    not meet a denial, or a repeat would do the effect a second time.
    """
    for each in facts.evidence:
        if each.kind == "probe" and each.finding == A.HAPPENED:
            return "A probe found its effect outside."
        if each.adoptable:
            return "A late result of this call is on its file."
    return ""


def refuse_while_locked(facts: Facts, wish: Wish) -> None:
    """Raise DenialLocked for a denial whose attempt is not proven dead, or in its grace (I2)."""
    if wish.answer is not A.DID_NOT_HAPPEN:
        return
    lock = lock_of(facts)
    if lock is not None:
        raise DenialLocked(awaits=lock.awaits, instead=lock.instead, current=lock.to_json())


@dataclass(frozen=True, slots=True)
class Lock:
    """Why a denial waits: for an instant, or for proof of death, expected by `dead_by` if ever."""

    awaits: str
    instead: str
    now: datetime
    unlocks_at: datetime | None = None
    dead_by: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """The lock as the API gives it; the countdown in whole seconds, None if unknown."""
        until = self.unlocks_at or self.dead_by
        left = None if until is None else max(0, -int(-(until - self.now).total_seconds() // 1))
        return {
            "awaits": self.awaits,
            "unlocks_at": _instant(self.unlocks_at),
            "dead_by": _instant(self.dead_by),
            "countdown_s": left,
        }


def _instant(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None


def lock_of(facts: Facts) -> Lock | None:
    """What a denial of this call waits for; None where it is open."""
    alive = [each for each in facts.crossings if not each.dead_proof]
    if alive:
        last = alive[-1]
        awaits = f"Attempt {last.fence} is not proven dead."
        if last.dead_by is None:
            instead = "If its machine is off, say so with grounds: POST …/proof-of-death."
        else:
            awaits += f" Its own fence has ended it by {last.dead_by:%H:%M:%S} UTC."
            instead = "Wait for the proof; its effect may be confirmed at any time."
        return Lock(awaits, instead, facts.now, None, last.dead_by)
    judged = judged_of(facts)
    if judged is None or judged.unlocks_at is None or judged.unlocks_at <= facts.now:
        return None
    return Lock(
        f"Attempt {judged.fence} is dead, and what it sent may be under way until "
        f"{judged.unlocks_at:%H:%M:%S} UTC.",
        "Wait until then.",
        facts.now,
        judged.unlocks_at,
    )


def judged_of(facts: Facts) -> Crossing | None:
    """The crossing that a denial judges: the one whose lock is the last to open."""
    found = [each for each in facts.crossings if each.unlocks_at is not None]
    return max(found, key=lambda each: each.unlocks_at or facts.now, default=None)


def refuse_without_evidence(facts: Facts, wish: Wish) -> None:
    """Raise EvidenceRequired: a side effect is stated on evidence that says the same (R64)."""
    if not facts.has_effect or wish.answer not in (A.HAPPENED, A.DID_NOT_HAPPEN):
        return
    if not any(each.finding == wish.answer for each in _named(facts, wish)):
        raise EvidenceRequired(finding=str(wish.answer))


def _named(facts: Facts, wish: Wish) -> list[Piece]:
    wanted = {*wish.evidence, *([wish.result] if wish.result else [])}
    return [each for each in facts.evidence if each.id in wanted]


def _level(facts: Facts, wish: Wish, ruling: Ruling) -> int:
    """Effect, class and what it rests on (console, section 7)."""
    if not facts.has_effect or ruling.level >= 4:
        return ruling.level
    if wish.answer is A.DID_NOT_HAPPEN and wish.then == "repeat":
        return 4
    states = wish.answer in (A.HAPPENED, A.DID_NOT_HAPPEN)
    backed = [each for each in _named(facts, wish) if each.finding == wish.answer]
    return 4 if states and all(each.kind == STATEMENT for each in backed) else ruling.level


# The answers


def _happened(facts: Facts, wish: Wish) -> Ruling:
    if wish.error:
        return _happened_with_error(facts, wish)
    piece = facts.piece(wish.result) if wish.result else None
    if piece is not None and piece.adoptable:
        return _adopted(facts, piece)
    return Ruling(
        event="proved_done",
        state=CallState.SUCCEEDED,
        effect=Effect.HAPPENED,
        level=3,
        deed="Record: happened" + (", with the result that was found" if piece else ""),
        afterwards="The call is settled. Only a correction can follow.",
        columns={"reason": "happened_stated"},
        told=notices.happened_stated(piece.text, piece.size_bytes)
        if piece
        else notices.happened_stated(None),
    )


def _happened_with_error(facts: Facts, wish: Wish) -> Ruling:
    error = notices.quoted(wish.error) + "."
    return Ruling(
        event="failed",
        state=CallState.FAILED,
        effect=Effect.HAPPENED,
        cause=Cause.TOOL_ERROR,
        level=3,
        deed="Record: happened, ended with an error",
        afterwards="The call is settled as failed; its effect happened. Only a correction can "
        "follow.",
        columns={"reason": "happened_stated", "error": wish.error, "cause": str(Cause.TOOL_ERROR)},
        told=notices.render("failed_after_effect", error=error),
    )


def _adopted(facts: Facts, piece: Piece) -> Ruling:
    return Ruling(
        event="adopted",
        state=CallState.SUCCEEDED,
        effect=Effect.HAPPENED,
        level=3,
        deed="Record: happened, adopt the late result",
        afterwards="The call is settled with the late result. Only a correction can follow.",
        columns={"reason": "late_result"},
        adopts=piece.id,
        model="The model reads the late result's own bytes.",
    )


def _did_not_happen(facts: Facts, wish: Wish) -> Ruling:
    judged = judged_of(facts)
    if wish.then == "repeat":
        return replace(
            _repeated(facts, Effect.DID_NOT_HAPPEN, "Record: did not happen, repeat once"),
            judged=judged,
        )
    return Ruling(
        event="failed",
        state=CallState.FAILED,
        effect=Effect.DID_NOT_HAPPEN,
        cause=facts.cause or Cause.INTERNAL,
        level=3,
        deed="Record: did not happen, close",
        afterwards="The call is settled without an effect. Its agent may submit it anew.",
        columns={"reason": "denied_stated"},
        told=notices.render("denied_stated"),
        judged=judged,
    )


def _repeated(facts: Facts, effect: Effect, deed: str) -> Ruling:
    close_s = facts.policy.timeouts.schedule_to_close_s
    return Ruling(
        event="cleared_for_retry",
        state=CallState.BACKING_OFF,
        effect=effect,
        level=3 if effect is Effect.DID_NOT_HAPPEN else 2,
        deed=deed,
        afterwards=f"The call is published at once and has {close_s:g} s; if this attempt is lost "
        "too, a person is asked again.",
        outside="The tool is called once more, with the same arguments and key.",
        request={
            "tool": facts.tool,
            "arguments": facts.arguments,
            "idempotency_key": facts.effect_key,
            "attempt": facts.attempts_used + 1,
            "queue": facts.queue,
        },
        arm={D.BACKOFF: 0.0, D.SCHEDULE_TO_CLOSE: close_s},
        columns={"reason": "resolution", "attempts_allowed": facts.attempts_used + 1},
        model="The model reads the result of the repeat.",
    )


def _retry_same_key(facts: Facts, wish: Wish) -> Ruling:
    return _repeated(facts, Effect.POSSIBLE, "Repeat once under the same key")


def _attach_handle(facts: Facts, wish: Wish) -> Ruling:
    close_s = facts.policy.timeouts.schedule_to_close_s
    return Ruling(
        event="resumed",
        state=CallState.PARKED,
        effect=Effect.POSSIBLE,
        level=2,
        deed="Attach the handle",
        outside="The outside is asked after this handle at once; asking changes nothing.",
        afterwards="If the outside knows the handle, the work is followed until it ends; if not, "
        "the call is ambiguous again and says that the handle is not known.",
        arm={D.NEXT_POLL: 0.0, D.SCHEDULE_TO_CLOSE: close_s},
        columns={"reason": "handle_unverified"},
        told=notices.render("interrupted"),
    )


def _probe_again(facts: Facts, wish: Wish) -> Ruling:
    window_s = facts.policy.armed_window_s
    return Ruling(
        event="probe_again",
        state=CallState.INTERRUPTED,
        effect=Effect.POSSIBLE,
        level=1,
        deed="Ask the outside again",
        outside="The outside is asked whether the effect happened; asking changes nothing.",
        afterwards=f"Recovery has {window_s:g} s; without proof a person is asked again.",
        arm={
            D.NEXT_STEP: 0.0,
            D.RECOVERY_WINDOW: window_s,
            D.SCHEDULE_TO_CLOSE: facts.policy.timeouts.schedule_to_close_s,
        },
        columns={"reason": "resolution"},
        told=notices.render("interrupted"),
    )


def _abandon(facts: Facts, wish: Wish) -> Ruling:
    return Ruling(
        event="abandoned",
        state=CallState.ABANDONED,
        effect=Effect.POSSIBLE,
        level=4,
        deed="Record: cannot be known",
        afterwards="The call is closed with its effect unknown, and keeps showing it. Only a "
        "correction can follow.",
        columns={"reason": "abandoned"},
        told=notices.render("abandoned"),
    )


def _nothing_more(facts: Facts, wish: Wish) -> str:
    return ""


def _a_result_on_the_file(facts: Facts, wish: Wish) -> str:
    if wish.result is not None and facts.piece(wish.result) is None:
        return "The result named is no evidence of this call."
    if wish.result is not None and wish.error:
        return "An outcome has a result or an error, not both."
    return ""


def _a_judged_attempt(facts: Facts, wish: Wish) -> str:
    if wish.then == "repeat" and facts.recovery_class is C.PROVIDER_AUTH:
        return "A sign-in is not repeated: a new one is a new call."
    return "" if facts.crossings else "No attempt of this call crossed its boundary."


def _a_free_handle(facts: Facts, wish: Wish) -> str:
    if not facts.takes_handles:
        return "This tool cannot ask after a handle."
    if facts.handle_of_another:
        return "This handle belongs to another call: one handle, one call."
    return ""


def _a_probe(facts: Facts, wish: Wish) -> str:
    return "" if facts.has_probe else "The policy of this tool names no probe."


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Where an answer is allowed (the table of semantics, section 8), and how it is drawn up."""

    draw: Callable[[Facts, Wish], Ruling]
    states: frozenset[CallState] = UNDECIDED
    classes: frozenset[RecoveryClass] = frozenset(RecoveryClass) - {C.READ_ONLY}
    only: str = "A read has no effect to decide about."
    then: tuple[str, ...] = ("",)
    unless: Callable[[Facts, Wish], str] = _nothing_more


AGAINST_PROOF = frozenset({A.DID_NOT_HAPPEN, A.RETRY_SAME_KEY, A.ABANDON})
"""Answers that do not exist once the effect is proved."""
ASKED = frozenset({CallState.AMBIGUOUS})
_RULES: dict[ResolutionAnswer, Rules] = {
    A.HAPPENED: Rules(draw=_happened, unless=_a_result_on_the_file),
    A.DID_NOT_HAPPEN: Rules(
        draw=_did_not_happen, then=("repeat", "close"), unless=_a_judged_attempt
    ),
    A.RETRY_SAME_KEY: Rules(
        draw=_retry_same_key,
        classes=frozenset({C.IDEMPOTENT_WRITE}),
        only="Only an idempotent write repeats under its key.",
    ),
    A.ATTACH_HANDLE: Rules(draw=_attach_handle, unless=_a_free_handle),
    A.PROBE_AGAIN: Rules(draw=_probe_again, states=ASKED, unless=_a_probe),
    A.ABANDON: Rules(draw=_abandon, states=ASKED),
}
"""Each answer and its row."""

OFFERED: tuple[tuple[ResolutionAnswer, str], ...] = tuple(
    (answer, then) for answer, rules in _RULES.items() for then in rules.then
)
"""Every answer with its `then`, in the order in which they are listed."""
