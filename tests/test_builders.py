"""The builders lead where they say, by histories that the ledger itself has written."""

import pytest

from ledger.journal import events_of
from ledger.models import PublishedTransition, ToolCall
from tests import builders
from tests.cast import Acme

STATES = sorted(str(state) for state in builders.WALKS)


@pytest.mark.parametrize("state", STATES)
def test_a_builder_leads_to_its_state(acme: Acme, state: str) -> None:
    call = builders.a_call(acme, in_state=state)
    assert call.state == state
    assert events_of(call.id)[-1].to_state == state


@pytest.mark.parametrize("recovery_class", ["idempotent_write", "long_running", "provider_auth"])
def test_other_classes_are_built_too(acme: Acme, recovery_class: str) -> None:
    call = builders.a_call(acme, in_state="interrupted", recovery_class=recovery_class)
    assert call.recovery_class == recovery_class
    assert call.effect == "possible"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("time", ["first", "second"])
def test_a_committing_test_leaves_nothing_but_the_machine(acme: Acme, time: str) -> None:
    assert ToolCall.objects.count() == 0
    assert PublishedTransition.objects.exists()
    builders.a_call(acme, in_state="ambiguous")
