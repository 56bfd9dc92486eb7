"""How long a tool's attempts took: measured from enough of them, or not spoken of."""

import pytest

from ledger.models import Attempt
from recovery import histories
from tests import builders
from tests.cast import Acme

pytestmark = pytest.mark.django_db


def test_the_99th_percentile_is_of_attempts_that_ended_well(acme: Acme) -> None:
    tool = builders.a_tool(acme, recovery_class="read_only")
    calls = [
        builders.a_call(acme, "succeeded", tool=tool) for _ in range(histories.MEASURED_MIN - 1)
    ]
    builders.a_call(acme, "failed", tool=tool)
    builders.a_call(acme, "succeeded", recovery_class="read_only")
    assert histories.measured_s(tool) is None
    calls.append(builders.a_call(acme, "succeeded", tool=tool))

    lengths = sorted(
        (each.ended_at - each.claimed_at).total_seconds()
        for each in Attempt.objects.filter(call__in=calls)
        if each.ended_at is not None
    )
    assert len(lengths) == histories.MEASURED_MIN
    assert histories.measured_s(tool) == pytest.approx(lengths[-1], abs=1e-6)
