"""Resolutions: what people decide moves the call once, on evidence, and never a living attempt."""

import pytest

from ledger.journal import events_of
from ledger.models import Attempt
from recovery import resolutions, stages
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme, as_decider
from tests.recovery.deciding import (
    AT_ONCE,
    ambiguous,
    decide,
    delay_over,
    incident_of,
)


def test_what_happened_settles_the_call_after_its_delay(acme: Acme) -> None:
    call = ambiguous(acme)
    resolution = decide(acme, call, "happened")
    assert (fresh(call).state, stages.of(resolution)) == ("ambiguous", "pending")

    delay_over(call)

    assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")
    assert stages.of(resolution) == "carried_out"
    assert (incident_of(call).state, incident_of(call).closed_at is None) == ("resolved", False)


def test_a_denial_repeats_the_call_exactly_once(acme: Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "did_not_happen", "repeat")
    assert (fresh(call).state, fresh(call).effect) == ("backing_off", "did_not_happen")
    assert (fresh(call).attempts_used, fresh(call).attempts_allowed) == (1, 2)
    past(call, "backoff")
    fire()
    assert fresh(call).state == "scheduled"
