"""Rows reach PostgreSQL as they are, few or many."""

from uuid import UUID

import pytest

from ledger.pipelines import rows
from ledger.tables import FEW, table

pytestmark = pytest.mark.django_db

COLUMNS = (("id", "uuid"), ("n", "integer"), ("s", "double precision"), ("yes", "boolean"),
           ("text", "text"), ("body", "bytea"))  # fmt: skip
ROW = (UUID(int=7), 5, 1e-07, True, 'a "quoted" \\ {brace}, NULL', b"\x00\xff\\")
NOTHING = (None, None, None, None, None, None)
EMPTY = (UUID(int=0), -1, float("inf"), False, "", b"")


@pytest.mark.parametrize("times", [1, FEW, 40], ids=["few", "more", "many"])
def test_every_value_comes_back_as_it_went(times: int) -> None:
    sent = [ROW, NOTHING, EMPTY] * times
    text, parameters = table(COLUMNS, sent)
    assert rows(f"SELECT * FROM {text}", parameters) == sent
