"""`sandbox.pay`: a payment that may succeed after its socket died."""

import pytest

from ledger.vocabulary import Cause, Meaning, ProbeFinding
from tests.sandbox.attempts import a_killable, assigned, probed, ran, value_of
from tests.sandbox.world import World

TOOL = "sandbox.pay"


def a_payment(**more: object) -> dict:
    return {"payee": "Harbour Bakery", "amount_cents": 1250, "currency": "EUR", **more}


def test_a_payment_is_made_after_the_boundary(world: World) -> None:
    outcome, context = ran(TOOL, a_payment())
    assert value_of(outcome)["amount_cents"] == 1250
    assert context.verbs == ["cross"]


@pytest.mark.parametrize(
    ("fault", "cause", "means", "finding"),
    [
        ("drop_after", Cause.CONNECTION_LOST, Meaning.UNKNOWN, ProbeFinding.HAPPENED),
        ("drop_before", Cause.CONNECTION_LOST, Meaning.UNKNOWN, ProbeFinding.DID_NOT_HAPPEN),
        ("error_after", Cause.SERVER_ERROR, Meaning.UNKNOWN, ProbeFinding.HAPPENED),
        ("declined", Cause.VALIDATION, Meaning.REFUSED, ProbeFinding.DID_NOT_HAPPEN),
    ],
)
def test_only_the_till_knows_what_a_broken_answer_hid(
    world: World, fault: str, cause: Cause, means: Meaning, finding: ProbeFinding
) -> None:
    outcome, context = ran(TOOL, a_payment(fault=fault))
    assert (outcome.cause, outcome.means) == (cause, means)
    assert probed(context.assignment).finding is finding


def test_a_payment_asked_twice_is_paid_twice(world: World) -> None:
    for fence in (1, 2):
        _, context = ran(TOOL, a_payment(), marker="paid-twice", fence=fence)
    assert len(probed(context.assignment).evidence["payments"]) == 2


@pytest.mark.parametrize(
    ("pause", "finding"),
    [("after_cross", ProbeFinding.DID_NOT_HAPPEN), ("after_effect", ProbeFinding.HAPPENED)],
)
def test_a_killed_payer_may_or_may_not_have_paid(
    world: World, pause: str, finding: ProbeFinding
) -> None:
    child = a_killable(TOOL, a_payment(**{f"pause_{pause}_s": 60}), f"payer-{pause}")
    child.wait_for(pause)
    child.kill()
    assert probed(assigned(TOOL, marker=f"payer-{pause}")).finding is finding


def test_a_till_that_is_not_there_was_never_asked(own_world: World) -> None:
    own_world.kill()
    outcome, context = ran(TOOL, a_payment())
    assert (outcome.cause, outcome.means) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert context.calls == []
