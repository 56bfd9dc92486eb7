"""What a lost attempt reports too late: only a result whose effect happened can be adopted."""

import pytest

from executors import runner
from executors.contract import Handle, Outcome, Result
from ledger.models import Evidence
from recovery import watchdog
from tests import builders
from tests.cast import Acme

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("outcome", "adoptable", "ends"),
    [
        pytest.param(
            Outcome.succeeded(Result(body=b'{"done": true}')), True, "succeeded", id="a result"
        ),
        pytest.param(
            Outcome.parked(Handle(value="run-1")), False, "ambiguous", id="that work was parked"
        ),
        # Adopted it would say that the effect happened, which the tool denies.
        pytest.param(
            Outcome.succeeded(Result(body=b"{}"), changed_nothing=True),
            False,
            "ambiguous",
            id="a result that changed nothing",
        ),
    ],
)
def test_only_a_late_result_is_adopted(
    acme: Acme, outcome: Outcome, adoptable: bool, ends: str
) -> None:
    call = builders.a_call(acme, in_state="interrupted", recovery_class="side_effect")
    runner.report(builders.claim_of(call), outcome)

    assert Evidence.objects.get(call=call, kind="late_result").adoptable is adoptable
    watchdog.fire_due()
    assert builders.fresh(call).state == ends
