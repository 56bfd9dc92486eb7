"""The times that drills give to every tool of a workspace."""

from collections.abc import Mapping

import pytest

from drills import stack
from drills.chaos import running
from ledger.policies import PRESETS, policy_for
from ledger.vocabulary import RecoveryClass


@pytest.mark.parametrize("times", [stack.SWIFT_TIMEOUTS, running.TIMEOUTS])
@pytest.mark.parametrize("recovery_class", list(RecoveryClass))
def test_the_times_of_a_drill_can_be_saved_for_every_class(
    recovery_class: RecoveryClass, times: Mapping[str, float]
) -> None:
    preset = PRESETS[recovery_class].to_json()
    document = preset | {"key_template": "path:{path}", "timeouts": preset["timeouts"] | times}
    assert policy_for(document).timeouts.schedule_to_start_s == times["schedule_to_start_s"]
