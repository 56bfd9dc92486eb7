"""Strict JSON under generated values and bytes."""

import json
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledger.strictjson import NotStrict, canonical, check, digest, parse, read_jsonb, storable
from ledger.strictjson.canonical import written

INTEGERS = st.integers(-(2**53) + 1, 2**53 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: not any(_is_noncharacter(ord(character)) for character in text)
)
LEAVES = st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS
KEYS = TEXTS.filter(str.isascii) | st.sampled_from(["\ufb33", "\U0001f600", "é", "日本"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
LOOKALIKES: st.SearchStrategy[Any] = st.sampled_from(
    [0, 0.0, -0.0, False, 1, 1.0, True, "1", None, "", [], {}, [1], [1.0]]
)
PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"1", b"-", b"0", b".", b"e", b"E+", b"null"]
    + [
        b"true",
        b"NaN",
        b"\\u0000",
        b"\\ud800",
        b"\xff",
        b"\x00",
        b" ",
        b"\xc3\xa9",
        b'"a":',
        b"e-9",
    ]
    + [b'{"a":', b'"\\\\"', b'"\\""', b"9" * 17, b"[[[", b"]]]", b"\xef\xbf\xbf", b"Infinity"]
)
SOUP = st.lists(PIECES, max_size=40).map(b"".join)


def _is_noncharacter(point: int) -> bool:
    return point == 0 or 0xFDD0 <= point <= 0xFDEF or point & 0xFFFE == 0xFFFE


def strict_form(value: Any) -> Any:
    """A value that compares equal only to the same JSON: types apart, zero without a sign."""
    if isinstance(value, dict):
        return {key: strict_form(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [strict_form(inner) for inner in value]
    return type(value).__name__, value


@given(VALUES)
def test_what_iswritten_is_read_back(value: Any) -> None:
    assert strict_form(parse(canonical(value))) == strict_form(value)


@given(VALUES)
def test_writing_again_changes_nothing(value: Any) -> None:
    assert canonical(parse(canonical(value))) == canonical(value)


@given(VALUES)
@example([1e16, -0.0, 1e-7, 5e-324])
@example({"\ufb33": 1, "\U0001f600": 2})
def test_the_fast_writer_and_the_slow_one_agree(value: Any) -> None:
    assert canonical(value) == written(value).encode()


@given(VALUES | LOOKALIKES, VALUES | LOOKALIKES)
def test_digests_are_equal_exactly_for_strictly_equal_values(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) is (strict_form(one) == strict_form(other))


@given(LOOKALIKES, LOOKALIKES)
def test_lookalikes_are_told_apart(one: Any, other: Any) -> None:
    assert (digest([one]) == digest([other])) is (strict_form(one) == strict_form(other))


@given(st.dictionaries(KEYS, VALUES, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_keys_is_no_difference(value: Any, dice: Any) -> None:
    pairs = list(value.items())
    dice.shuffle(pairs)
    assert digest(dict(pairs)) == digest(value)


@given(VALUES)
def test_whatever_any_writer_makes_of_a_strict_value_is_taken(value: Any) -> None:
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only, indent=1)
        assert strict_form(parse(text.encode())) == strict_form(value)


@given(VALUES)
def test_what_parse_returns_passes_the_check(value: Any) -> None:
    check(parse(canonical(value)))
    assert storable(value).json_text is not None


@given(FLOATS)
def test_a_double_iswritten_shortest_and_exactly(number: float) -> None:
    text = canonical(number).decode()
    assert float(text) == number
    assert type(json.loads(text)) is float
    assert len(text) <= len("-0.000001") + 17


@given(FLOATS)
def test_a_double_survives_being_a_numeric(number: float) -> None:
    digits = format(Decimal(canonical(number).decode()), "f")
    assert strict_form(read_jsonb(digits)) == strict_form(number)


@given(st.binary(max_size=200) | SOUP)
@settings(max_examples=500)
def test_bytes_are_read_or_refused_and_nothing_else(body: bytes) -> None:
    try:
        check(parse(body))
    except NotStrict as raised:
        refusal = raised
    else:
        return
    assert refusal.http in (413, 422)
    assert "\x00" not in refusal.pointer.encode().decode()


@given(SOUP)
@settings(max_examples=500)
def test_what_is_taken_means_the_same_to_another_reader(body: bytes) -> None:
    try:
        value = parse(body)
    except NotStrict:
        return
    other = orjson.loads(body)
    # The other reader takes the integer -0 for a float; for everything else they agree.
    assert other == value


@given(SOUP)
def test_a_result_is_kept_whatever_it_is(body: bytes) -> None:
    stored = storable(body)
    assert stored.body == body
    assert (stored.json_text is None) is bool(stored.why_not_json)


@given(VALUES, st.data())
def test_no_proper_beginning_of_an_object_is_a_document(value: Any, data: Any) -> None:
    body = canonical({"value": value})
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(NotStrict):
        parse(body[:cut])
