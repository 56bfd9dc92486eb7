"""Whole numbers as addresses, forms and headers bring them: other people's text."""

DIGITS_MAX = 9


def whole(text: str | None) -> int | None:
    """The number, from 0 on, or None for what is none or has more digits.

    Not `int` alone: it reads signs, blanks, underscores and the digits of any script, and refuses
    a text of more than 4,300 digits by an error that no form has a sentence for.
    """
    if text and text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX:
        return int(text)
    return None
