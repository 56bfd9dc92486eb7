"""A cursor goes on where its page ended, for its own filters alone, and nothing else is one."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, date, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import cursors
from ledger.errors import Invalid

OPEN = {"state": "running"}
DAY, ID = date(2026, 1, 31), UUID(int=7)
TEXTS = st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]))


@given(moment=st.datetimes(timezones=st.just(UTC)), id_=st.uuids(), name=TEXTS)
def test_a_place_is_read_as_it_was_written(moment: datetime, id_: UUID, name: str) -> None:
    cursor = cursors.written((moment.isoformat(), id_, name), OPEN)
    read = cursors.read(cursor, OPEN, datetime.fromisoformat, UUID, cursors.word)
    assert read == [moment, id_, name]


def test_it_needs_no_escape_in_an_address() -> None:
    assert cursors.written((DAY, ID), OPEN).replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("filters", [{}, {"state": "failed"}, OPEN | {"sort": "oldest"}])
def test_one_of_other_filters_is_refused(filters: dict[str, str]) -> None:
    cursor = cursors.written((DAY, ID), OPEN)
    with pytest.raises(Invalid, match="Start without one"):
        cursors.read(cursor, filters, date.fromisoformat, UUID)


@pytest.mark.parametrize("place", [(DAY,), (DAY, ID, ID), (ID, DAY), ("", "")])
def test_one_of_another_list_is_refused(place: tuple[object, ...]) -> None:
    cursor = cursors.written(place, OPEN)
    with pytest.raises(Invalid, match="Start without one"):
        cursors.read(cursor, OPEN, date.fromisoformat, UUID)


@pytest.mark.parametrize("cursor", ["x", "é", "A", "====", "AAAAAAAAAAA_", "a" * 5000, "\0"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid, match="Start without one"):
        cursors.read(cursor, OPEN, cursors.word)


@pytest.mark.parametrize("name", [b"\0", b"\xff", b"\xed\xa0\x80"])
def test_a_text_that_no_row_can_have_is_refused(name: bytes) -> None:
    bound = urlsafe_b64decode(cursors.written(("x",), OPEN))[:-1]
    forged = urlsafe_b64encode(bound + name).decode()
    with pytest.raises(Invalid, match="Start without one"):
        cursors.read(forged, OPEN, cursors.word)
