"""Whole numbers of other people's text."""

import pytest

from ledger.numbers import whole


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("7", 7), ("007", 7), ("999999999", 10**9 - 1)]
)
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole(text) == number


@pytest.mark.parametrize(
    "text",
    [None, "", " 7", "+7", "-7", "7.0", "1_000", "seven", "٧", "²", "1000000000", "9" * 5000],
)
def test_all_else_is_none(text: str | None) -> None:
    assert whole(text) is None
