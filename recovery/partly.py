"""An effect that happened in part, told as two lists: what was done and what was not.

It is `happened` with an error: the call fails after its effect, is never run again, and its agent
reads both lists. Source: console, section 4.
"""

from ledger.errors import Invalid

ITEMS_MAX = 50


def error_of(done: str, not_done: str) -> str:
    """The two lists as one text, an item a line of each. Raises Invalid unless both have one."""
    lists = [_items(done), _items(not_done)]
    if not all(lists):
        raise Invalid(
            detail="Say what was done and what was not, an item a line: the model reads both lists."
        )
    if any(len(each) > ITEMS_MAX for each in lists):
        raise Invalid(detail=f"Each list has at most {ITEMS_MAX} items.")
    return f"Done: {'; '.join(lists[0])}. Not done: {'; '.join(lists[1])}"


def _items(text: str) -> list[str]:
    return [each.strip(" .;") for each in text.splitlines() if each.strip(" .;")]
