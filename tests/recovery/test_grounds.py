"""Grounds typed once are offered again to who typed them, for a call of the same cause."""

from datetime import timedelta

import pytest

from ledger import clock
from recovery import grounds
from tests.cast import Acme, a_person, as_decider
from tests.recovery.deciding import ambiguous, decide

pytestmark = pytest.mark.django_db


def test_the_last_grounds_of_the_same_cause_are_offered(acme: Acme) -> None:
    decide(acme, ambiguous(acme), "abandon", grounds="The first.")
    decide(acme, ambiguous(acme), "abandon", grounds="The provider keeps no records.")
    last = grounds.last_of(as_decider(acme.olga), ambiguous(acme))
    assert last is not None
    assert last.grounds == "The provider keeps no records."


def test_nobody_is_offered_the_grounds_of_somebody_else(acme: Acme) -> None:
    decide(acme, ambiguous(acme), "abandon")
    omar = as_decider(a_person("omar", acme.workspace, "operator"))
    assert grounds.last_of(omar, ambiguous(acme)) is None


def test_a_call_is_not_offered_its_own_grounds(acme: Acme) -> None:
    call = ambiguous(acme)
    decide(acme, call, "abandon")
    assert grounds.last_of(as_decider(acme.olga), call) is None


def test_after_a_day_they_are_old(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(acme, ambiguous(acme), "abandon")
    later = clock.now() + timedelta(hours=25)
    monkeypatch.setattr("recovery.grounds.clock.now", lambda: later)
    assert grounds.last_of(as_decider(acme.olga), ambiguous(acme)) is None
