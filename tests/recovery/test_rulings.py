"""Rulings from facts alone: every row of the table of answers, and the order of refusals."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from ledger import machine
from ledger.errors import AlreadySettled, LedgerError
from ledger.policies import policy_for
from ledger.verification.bounds import MUST_BE_ARMED
from ledger.vocabulary import Actor, CallState, Deadline, Effect, RecoveryClass, ResolutionAnswer
from recovery import rulings
from recovery.refusals import AlreadyDecided, DenialLocked, NotEligible
from recovery.rulings import Crossing, Decided, Facts, Piece, Wish

A, C = ResolutionAnswer, RecoveryClass
NOW = datetime(2026, 1, 31, 14, tzinfo=UTC)
DEAD = Crossing(attempt_id=UUID(int=1), fence=1, lease_until=NOW, dead_proof="reaped",
                unlocks_at=NOW)  # fmt: skip
LATE = Piece(id=UUID(int=2), kind="late_result", finding="happened", adoptable=True)
DOCUMENT = Piece(id=UUID(int=3), kind="document", finding="happened", text="{}", size_bytes=2)


def facts(recovery_class: RecoveryClass = C.SIDE_EFFECT, **more: Any) -> Facts:
    """An ambiguous call whose one crossed attempt is dead, unless said otherwise."""
    document: dict[str, Any] = {"recovery_class": str(recovery_class)}
    if recovery_class is C.IDEMPOTENT_WRITE:
        document["key_template"] = "path:{path}"
    base = Facts(
        now=NOW, call="call_1", tool="mail.send", recovery_class=recovery_class,
        policy=policy_for(document), state=CallState.AMBIGUOUS, effect=Effect.POSSIBLE,
        attempts_used=1, attempts_allowed=2, fence=1, crossings=(DEAD,), has_probe=True,
        takes_handles=True, evidence=(DOCUMENT,),
    )  # fmt: skip
    return replace(base, **more)


ROWS: list[tuple[RecoveryClass, Wish, str, str, str, str]] = [
    (C.SIDE_EFFECT, Wish(answer=A.HAPPENED), "proved_done", "succeeded", "happened",
     "happened_stated"),
    (C.SIDE_EFFECT, Wish(answer=A.HAPPENED, result=DOCUMENT.id), "proved_done", "succeeded",
     "happened", "happened_stated"),
    (C.SIDE_EFFECT, Wish(answer=A.HAPPENED, error="half"), "failed", "failed", "happened",
     "failed_after_effect"),
    (C.SIDE_EFFECT, Wish(answer=A.DID_NOT_HAPPEN, then="repeat"), "cleared_for_retry",
     "backing_off", "did_not_happen", ""),
    (C.SIDE_EFFECT, Wish(answer=A.DID_NOT_HAPPEN, then="close"), "failed", "failed",
     "did_not_happen", "denied_stated"),
    (C.IDEMPOTENT_WRITE, Wish(answer=A.RETRY_SAME_KEY), "cleared_for_retry", "backing_off",
     "possible", ""),
    (C.LONG_RUNNING, Wish(answer=A.ATTACH_HANDLE), "resumed", "parked", "possible",
     "interrupted"),
    (C.SIDE_EFFECT, Wish(answer=A.PROBE_AGAIN), "probe_again", "interrupted", "possible",
     "interrupted"),
    (C.SIDE_EFFECT, Wish(answer=A.ABANDON), "abandoned", "abandoned", "possible", "abandoned"),
]  # fmt: skip
rows = pytest.mark.parametrize(
    ("recovery_class", "wish", "event", "state", "effect", "template"),
    ROWS,
    ids=[f"{row[1].answer}-{row[1].then}{row[1].error}-{row[3]}" for row in ROWS],
)


@rows
def test_every_row_of_the_table_of_answers(
    recovery_class: RecoveryClass, wish: Wish, event: str, state: str, effect: str, template: str
) -> None:
    ruling = rulings.rule(facts(recovery_class), wish)
    told = ruling.told.template if ruling.told else ""
    assert (ruling.event, ruling.state, ruling.effect, told) == (event, state, effect, template)


@rows
def test_every_ruling_is_an_edge_of_the_machine_with_its_deadlines_armed(
    recovery_class: RecoveryClass, wish: Wish, event: str, state: str, effect: str, template: str
) -> None:
    ruling = rulings.rule(facts(recovery_class), wish)
    machine.step(ruling.event, source=CallState.AMBIGUOUS, target=ruling.state, by=Actor.OPERATOR)
    assert machine.pair_is_allowed(ruling.state, ruling.effect, str(recovery_class))
    if not ruling.state.is_settled:
        assert {*MUST_BE_ARMED[ruling.state], Deadline.SCHEDULE_TO_CLOSE} <= set(ruling.arm)


def test_a_late_result_is_adopted_with_its_own_bytes() -> None:
    ruling = rulings.rule(facts(evidence=(LATE,)), Wish(answer=A.HAPPENED, result=LATE.id))
    assert (ruling.event, ruling.adopts, ruling.told) == ("adopted", LATE.id, None)


def refusal(about: Facts, wish: Wish) -> type[LedgerError]:
    with pytest.raises(LedgerError) as refused:
        rulings.rule(about, wish)
    return refused.type


ALIVE = replace(DEAD, dead_proof="", unlocks_at=None, dead_by=NOW + timedelta(seconds=20))
TAKEN = Decided(id=UUID(int=9), by="olga", answer="abandon", at=NOW, is_request=False)
DENY = Wish(answer=A.DID_NOT_HAPPEN, then="close")


def test_permanent_reasons_are_told_before_those_that_pass() -> None:
    worst = facts(
        state=CallState.SUCCEEDED, effect=Effect.HAPPENED, decided=TAKEN, crossings=(ALIVE,)
    )
    undecided = replace(worst, state=CallState.AMBIGUOUS, effect=Effect.POSSIBLE)
    assert refusal(worst, DENY) is AlreadySettled
    assert refusal(undecided, DENY) is AlreadyDecided
    assert refusal(replace(undecided, decided=None), replace(DENY, then="")) is NotEligible
    assert refusal(replace(undecided, decided=None), DENY) is DenialLocked


def test_the_lock_counts_down_to_the_expected_death_then_to_the_end_of_the_grace() -> None:
    alive = rulings.lock_of(facts(crossings=(ALIVE,)))
    grace = replace(DEAD, unlocks_at=NOW + timedelta(seconds=4.2))
    dead = rulings.lock_of(facts(crossings=(grace,)))
    assert alive is not None
    assert dead is not None
    assert (alive.to_json()["countdown_s"], alive.to_json()["unlocks_at"]) == (20, None)
    assert (dead.to_json()["countdown_s"], dead.to_json()["dead_by"]) == (5, None)


def test_an_attempt_without_a_kernel_fence_is_awaited_without_an_instant() -> None:
    lock = rulings.lock_of(facts(crossings=(replace(ALIVE, dead_by=None),)))
    assert lock is not None
    assert lock.to_json()["countdown_s"] is None
    assert "proof-of-death" in lock.instead


def test_one_living_attempt_among_dead_ones_locks_the_denial() -> None:
    assert refusal(facts(C.IDEMPOTENT_WRITE, crossings=(ALIVE, DEAD)), DENY) is DenialLocked


@pytest.mark.parametrize("answer", sorted(rulings.AGAINST_PROOF))
def test_nothing_is_said_against_proof_that_is_in_hand(answer: ResolutionAnswer) -> None:
    wish = Wish(answer=answer, then="close" if answer is A.DID_NOT_HAPPEN else "")
    known = facts(C.IDEMPOTENT_WRITE, evidence=(LATE,))
    assert refusal(known, wish) is NotEligible


@pytest.mark.parametrize("effect", [Effect.NOT_BEGUN, Effect.DID_NOT_HAPPEN])
def test_what_is_known_is_not_decided(effect: Effect) -> None:
    known = facts(state=CallState.INTERRUPTED, effect=effect)
    for answer, then in rulings.OFFERED:
        assert refusal(known, Wish(answer=answer, then=then)) is NotEligible


def test_a_sign_in_is_never_repeated() -> None:
    auth = facts(C.PROVIDER_AUTH, state=CallState.INTERRUPTED)
    assert refusal(auth, replace(DENY, then="repeat")) is NotEligible
