"""Arguments of a call as an object, whether they came as one or as its text.

Nothing here invents: a text that does not hold an object is kept as text (T10).
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

UNPARSED = "unparsed_arguments"
_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def received(value: Any) -> tuple[Mapping[str, Any] | None, str | None]:
    """Arguments as a format brought them: the object, or None, and the text if they were text.

    An object has no text. A text in a text is read through once. What is neither text nor object
    is kept as its JSON.
    """
    if isinstance(value, Mapping):
        return value, None
    if isinstance(value, str):
        return parsed(value), value
    return None, json.dumps(value)


def parsed(text: str) -> Mapping[str, Any] | None:
    """The object that a text holds; None if it holds none, or anything outside RFC 8259."""
    value = _value(text)
    value = _value(value) if isinstance(value, str) else value
    return value if isinstance(value, Mapping) else None


def written(arguments: Mapping[str, Any]) -> str:
    """The text of an object that we write: its own order, no blanks, equal for equal input."""
    return _WRITER.encode(arguments)


def text_written(text: str) -> str:
    """A text as it stands in what `written` gives."""
    return _WRITER.encode(text)


def same(arguments: Mapping[str, Any]) -> str:
    """A text that is equal for equal arguments, whatever the order of their members."""
    return json.dumps(arguments, sort_keys=True, separators=(",", ":"))


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None


def _refused(constant: str) -> NoReturn:
    raise ValueError(constant)
