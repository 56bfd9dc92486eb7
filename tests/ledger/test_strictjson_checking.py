"""The strict rules for Python values, for media types and for identifiers."""

from collections import OrderedDict
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest

from ledger.strictjson import Code, NotStrict, check, check_media_type, is_identifier


class Colour(StrEnum):
    RED = "red"


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1)] if levels > 1 else []


A_LOOP: list[Any] = []
A_LOOP.append(A_LOOP)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ((1, 2), Code.NOT_JSON),
        ({1}, Code.NOT_JSON),
        (b"x", Code.NOT_JSON),
        (datetime(2026, 1, 1, tzinfo=UTC), Code.NOT_JSON),
        (Colour.RED, Code.NOT_JSON),
        (OrderedDict(a=1), Code.NOT_JSON),
        (1j, Code.NOT_JSON),
        ({1: 2}, Code.KEY_NOT_TEXT),
        ({Colour.RED: 2}, Code.KEY_NOT_TEXT),
        (float("nan"), Code.NOT_FINITE),
        (float("-inf"), Code.NOT_FINITE),
        (2**53, Code.INTEGER_TOO_LARGE),
        ("\x00", Code.NUL_CHARACTER),
        ("\udc00", Code.LONE_SURROGATE),
        ("\U0010fffe", Code.NONCHARACTER),
        ({"é": 1, "e\u0301": 2}, Code.DUPLICATE_KEY),
        (A_LOOP, Code.TOO_DEEP),
        (nested(33), Code.TOO_DEEP),
        ([0] * 20_000, Code.TOO_MANY_NODES),
        ("x" * (256 * 1024 + 1), Code.STRING_TOO_LONG),
        (["x" * 250_000] * 5, Code.PAYLOAD_TOO_LARGE),
    ],
)
def test_a_python_value_obeys_the_same_rules(value: object, code: Code) -> None:
    with pytest.raises(NotStrict) as caught:
        check([value] if code is Code.NOT_JSON else value)
    assert caught.value.code is code


def test_a_plain_python_value_passes() -> None:
    check(nested(32))
    check({"a": [None, True, 1, 1.5, "x", {}, []], "b": 2**53 - 1})


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json ; charset=utf8 ",
    ],
)
def test_plain_json_media_types_are_taken(media_type: str) -> None:
    check_media_type(media_type)


@pytest.mark.parametrize(
    ("media_type", "encoding"),
    [
        ("", ""),
        ("text/plain", ""),
        ("application/json; charset=latin-1", ""),
        ("application/json; charset=utf-8; x=1", ""),
        ("application/jsonx", ""),
        ("application/json\n", ""),
        ("application/json, text/plain", ""),
        ("application/json", "gzip"),
        ("application/json", "identity"),
    ],
)
def test_other_media_types_are_refused_with_415(media_type: str, encoding: str) -> None:
    with pytest.raises(NotStrict) as caught:
        check_media_type(media_type, encoding)
    assert (caught.value.http, caught.value.problem) == (415, "media_type")


@pytest.mark.parametrize("text", ["a", "Az09_.:-", "x" * 128])
def test_identifiers_of_ours(text: str) -> None:
    assert is_identifier(text)


@pytest.mark.parametrize("text", ["", "x" * 129, "a b", "a/b", "a\n", "é", "\u0661", "a\x00", "~"])
def test_what_is_no_identifier(text: str) -> None:
    assert not is_identifier(text)
