"""An effect that happened in part is told as two lists, and both are asked for."""

import pytest

from ledger.errors import Invalid
from recovery import partly


def test_the_two_lists_are_one_text() -> None:
    text = partly.error_of("invoice 7 sent\n\ninvoice 8 sent.", "invoice 9")
    assert text == "Done: invoice 7 sent; invoice 8 sent. Not done: invoice 9"


@pytest.mark.parametrize(("done", "not_done"), [("", "x"), ("x", " \n."), ("", "")])
def test_one_list_alone_is_refused(done: str, not_done: str) -> None:
    with pytest.raises(Invalid, match="what was done and what was not"):
        partly.error_of(done, not_done)


def test_a_list_is_bounded() -> None:
    with pytest.raises(Invalid, match="at most 50 items"):
        partly.error_of("x\n" * 51, "y")
