"""What a lost attempt reports too late: a result can be adopted, that work was parked cannot."""

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
