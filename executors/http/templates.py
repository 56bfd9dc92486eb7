"""Filling `{name}` in URLs, texts and JSON with the values of a call.

A value can only ever become a value: in a URL it is percent-encoded and never stands in
scheme, host or port; in JSON a text that is one placeholder takes the value with its type.
`{{` and `}}` are braces.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from executors.contract import JSON

OWN_NAMES = frozenset({"call_id", "handle", "idempotency_key", "marker"})
"""Values of the ledger; an argument of the same name is not reachable by a template."""

_PIECE = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_.-]{0,127})\}|[{}]", re.ASCII)
_AUTHORITY_END = re.compile(r"(?<!/)/(?!/)|\?")
ABSENT: Any = object()


class Unfillable(ValueError):
    """A template asks for a value that the call does not have, or that does not fit there."""


def names_in(template: JSON) -> frozenset[str]:
    """The placeholders of a URL, text or JSON template; raises Unfillable for a stray brace."""
    return frozenset(_names(template))


def fill_text(template: str, values: Mapping[str, JSON]) -> str:
    return _PIECE.sub(lambda piece: _literal(piece) or _text(piece[1], values), template)


def fill_path(template: str, values: Mapping[str, JSON]) -> str:
    """Fill the path of a URL: each value is one non-empty, percent-encoded piece."""

    def encoded(name: str) -> str:
        text = _text(name, values)
        if not text or any(ord(character) < 32 or ord(character) == 127 for character in text):
            raise Unfillable(
                f"The argument {name!r} stands in the path of the URL and is empty or has a "
                "control character. Nothing was sent. Call again with a plain value."
            )
        return quote(text, safe="")

    return _PIECE.sub(lambda piece: _literal(piece) or encoded(piece[1]), template)


def fill_query(template: str, values: Mapping[str, JSON]) -> str:
    """Fill the query of a URL, percent-encoding each value."""
    return _PIECE.sub(
        lambda piece: _literal(piece) or quote(_text(piece[1], values), safe=""), template
    )


def fill_url(template: str, values: Mapping[str, JSON]) -> str:
    path, mark, query = template.partition("?")
    return fill_path(path, values) + mark + fill_query(query, values)


def fill_json(template: JSON, values: Mapping[str, JSON]) -> JSON:
    """Fill every text of a JSON template.

    A text that is exactly one placeholder becomes the value itself; where the call has no
    such argument, the member or item is left out, so optional arguments stay optional.
    """
    if isinstance(template, dict):
        filled = {key: fill_json(member, values) for key, member in template.items()}
        return {key: member for key, member in filled.items() if member is not ABSENT}
    if isinstance(template, list):
        return [item for part in template if (item := fill_json(part, values)) is not ABSENT]
    if not isinstance(template, str):
        return template
    whole = _PIECE.fullmatch(template)
    if whole and whole[1]:
        return values.get(whole[1], ABSENT)
    return fill_text(template, values)


def authority_of(template: str) -> str:
    """Scheme, host and port of a URL template: everything before its path or query."""
    end = _AUTHORITY_END.search(template)
    return template[: end.start()] if end else template


def _names(template: JSON) -> Iterator[str]:
    if isinstance(template, dict):
        for member in template.values():
            yield from _names(member)
    elif isinstance(template, list):
        for item in template:
            yield from _names(item)
    elif isinstance(template, str):
        for piece in _PIECE.finditer(template):
            if not _literal(piece):
                yield piece[1]


def _literal(piece: re.Match[str]) -> str:
    if piece[0] in ("{", "}"):
        raise Unfillable("A template has a single brace. Write {{ or }} for a brace itself.")
    return {"{{": "{", "}}": "}"}.get(piece[0], "")


def _text(name: str, values: Mapping[str, JSON]) -> str:
    value = values.get(name, ABSENT)
    if value is ABSENT:
        raise Unfillable(
            f"The argument {name!r} is missing and the tool's request needs it. Nothing was "
            "sent. Call again with it."
        )
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        raise Unfillable(
            f"The argument {name!r} is not a text, number or truth value, so it does not fit "
            "into the tool's request. Nothing was sent. Call again with a plain value."
        )
    return json.dumps(value)
