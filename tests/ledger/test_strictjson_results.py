"""A tool's result is kept whatever it is, and never read as what it is not."""

from dataclasses import FrozenInstanceError
from hashlib import sha256

import pytest

from ledger.strictjson import Stored, storable
from ledger.strictjson.results import BLOB_BYTES_MAX


def test_strict_json_is_kept_as_text_exactly_as_received() -> None:
    body = b' {"b": 1.0, "a": "\\u00e9"} '
    assert storable(body) == Stored(
        json_text=body.decode(),
        body=body,
        why_not_json="",
        sha256=sha256(body).hexdigest(),
        size_bytes=len(body),
        truncated=False,
    )


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"[1", b"NaN", b'{"paid":true,"paid":false}', b"[" * 100_000, b'"\\u0000"'],
)
def test_what_is_not_strict_is_kept_as_bytes_with_the_reason(body: bytes) -> None:
    stored = storable(body)
    assert (stored.json_text, stored.body, stored.truncated) == (None, body, False)
    assert stored.why_not_json.startswith("The result is kept as bytes")
    assert stored.sha256 == sha256(body).hexdigest()


def test_the_reason_names_the_place() -> None:
    assert "(at /a/1)" in storable(b'{"a":[1,Infinity]}').why_not_json


def test_json_beyond_a_mebibyte_becomes_a_blob() -> None:
    body = b'"' + b"x" * 1024 * 1024 + b'"'
    stored = storable(body)
    assert (stored.json_text, stored.size_bytes) == (None, len(body))
    assert "1048576 bytes" in stored.why_not_json


@pytest.mark.parametrize("media_type", ["text/plain", "", "application/octet-stream", "x/json"])
def test_what_does_not_call_itself_json_is_not_read(media_type: str) -> None:
    assert storable(b"{}", media_type).json_text is None


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "text/json",
        "application/problem+json",
        "application/json; charset=utf-8",
    ],
)
def test_what_calls_itself_json_is_read(media_type: str) -> None:
    assert storable(b"{}", media_type).json_text == "{}"


def test_a_result_beyond_64_mib_is_cut_and_keeps_the_full_hash() -> None:
    body = bytes(BLOB_BYTES_MAX + 1)
    stored = storable(body, "application/octet-stream")
    assert (len(stored.body), stored.size_bytes) == (BLOB_BYTES_MAX, BLOB_BYTES_MAX + 1)
    assert stored.truncated
    assert stored.sha256 == sha256(body).hexdigest()


def test_a_cut_result_is_never_read_as_json() -> None:
    stored = storable(b"12", truncated=True, full_sha256="f" * 64, full_size_bytes=3)
    assert stored.json_text is None
    assert (stored.sha256, stored.size_bytes, stored.truncated) == ("f" * 64, 3, True)


def test_a_python_value_is_written_in_its_own_order() -> None:
    assert storable({"b": 1.0, "a": ["é", None]}).json_text == '{"b":1.0,"a":["é",null]}'


@pytest.mark.parametrize(
    ("value", "shown"),
    [((1, 2), b"(1, 2)"), ({"a": float("inf")}, b"{'a': inf}"), ("a\udc00", b"a\\udc00")],
)
def test_a_python_value_without_a_json_form_is_shown(value: object, shown: bytes) -> None:
    stored = storable(value)
    assert (stored.json_text, stored.body) == (None, shown)
    assert stored.why_not_json


class Hostile:
    def __repr__(self) -> str:
        raise ValueError("no text for you")


def test_a_value_that_cannot_even_be_shown_is_still_kept() -> None:
    assert storable(Hostile()).body == b"<Hostile without a text: ValueError>"


def test_a_value_that_contains_itself_is_kept() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert storable(loop).body == b"[[...]]"


def test_what_is_stored_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        storable(b"{}").truncated = True  # type: ignore[misc]
