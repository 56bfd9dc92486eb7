"""What the tests of notifications share: an admin of Acme and a receiver that listens."""

from collections.abc import Iterator

import pytest

from ledger.permissions import Person
from tests import cast
from tests.notifications import telling


@pytest.fixture
def anna(acme: cast.Acme) -> Person:
    return telling.an_admin(acme)


@pytest.fixture
def receiver() -> Iterator[telling.Receiver]:
    with telling.a_receiver() as found:
        yield found
