"""How large JSON may be, per edge. A limit does one thing and has one name."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

INTEGER_MAX = 2**53 - 1
"""The largest integer that every reader holds exactly (RFC 7493, section 2.2)."""

NUMBER_CHARACTERS_MAX = 64
"""The longest number token; a double never needs more than 25 (security, section 2, rule 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one edge accepts.

    `size_bytes`: the whole text. `depth`: nested arrays and objects; a scalar has depth 0 and
    `[]` depth 1. `nodes`: values of any kind, the outermost included. `items`: members of one
    array. `key_characters`: one key. `string_bytes`: one string, as UTF-8.
    """

    size_bytes: int
    depth: int
    nodes: int
    items: int
    key_characters: int
    string_bytes: int


API = Limits(
    size_bytes=MIB,
    depth=32,
    nodes=20_000,
    items=20_000,
    key_characters=256,
    string_bytes=256 * KIB,
)
"""Every request body, webhook and operator form (security, section 2)."""

RESULT = Limits(
    size_bytes=MIB,
    depth=32,
    nodes=20_000,
    items=20_000,
    key_characters=256,
    string_bytes=MIB,
)
"""A tool's result that is kept inline; beyond it the bytes become a blob, never a refusal."""

TRANSCRIPT = Limits(
    size_bytes=10 * MIB,
    depth=64,
    nodes=400_000,
    items=20_000,
    key_characters=256,
    string_bytes=10 * MIB,
)
"""A transcript to validate, repair or import: 20,000 entries of about twenty values each."""
