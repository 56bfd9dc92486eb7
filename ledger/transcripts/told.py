"""Texts that stand for a result: ours by their templates, a caller's by exact match (T17).

Recognised as a whole: a tool whose output merely contains such a text gave a result.
"""

import re
from collections.abc import Collection
from functools import cache

from ledger import notices
from ledger.transcripts.neutral import Opaque, Result

NEVER_A_NOTICE = frozenset(notices.OPERATOR_STATED) | {"edited", "twin_done", "failed_after_effect"}
"""Templates that carry a result or a person's word: these are results, and are never replaced."""


def is_notice(result: Result, further: Collection[str] = ()) -> bool:
    """Whether a result is a text of ours or of the caller's that stands in for one."""
    if result.delivery:
        return result.delivery in ("notice", "partial")
    if any(isinstance(part, Opaque) for part in result.parts):
        return False
    text = result.text
    return text in further or bool(_pattern().fullmatch(text))


def unrecorded() -> notices.Told:
    """What a call is told of which neither transcript nor ledger has a result."""
    return notices.render("unrecorded")


@cache
def _pattern() -> re.Pattern[str]:
    """Every template of ours as one pattern, its values as one line of text."""
    texts = (
        re.sub(r"\\\{\w+\\\}", "[^\n]{0,4096}?", re.escape(text))
        for name, text in notices.TEMPLATES.items()
        if name not in NEVER_A_NOTICE
    )
    return re.compile("|".join(f"(?:{text})" for text in texts))
