"""Payloads: trees and texts, clipped with counts, masked before they are clipped."""

import base64
import hashlib
import json

import pytest
from django.template.loader import render_to_string

from dashboard import payloads
from dashboard.payloads import Payload


def tree(value: object, **more: object) -> Payload:
    size = len(json.dumps(value))
    return payloads.of_value(
        value, **{"title": "Arguments", "source": payloads.FROM_MODEL, "size_bytes": size,
                  "sha256": "a" * 64} | more,
    )  # type: ignore[arg-type]  # fmt: skip


def drawn(payload: Payload) -> str:
    return render_to_string("dashboard/parts/_payload.html", {"payload": payload, "id": "p"})


def test_two_levels_stand_open_and_the_rest_is_folded() -> None:
    found = [line.is_open for line in tree({"a": {"b": {"c": {}}}}).lines if line.opens]
    assert found == [True, True, False, False]


def test_from_64_kilobytes_on_everything_is_folded() -> None:
    assert not any(line.is_open for line in tree({"a": {}}, size_bytes=65 * 1024).lines)


@pytest.mark.parametrize(
    ("value", "size", "why"),
    [(list(range(2_500)), 9_000, "2501 nodes"), ({"a": "x" * 300_000}, 300_010, "256 kB")],
    ids=["nodes", "bytes"],
)
def test_above_the_limits_only_the_beginning_is_shown_as_text(
    value: object, size: int, why: str
) -> None:
    found = tree(value, size_bytes=size)
    assert found.lines == []
    assert why in found.why
    assert len(found.text) <= 32 * 1024


def test_a_long_text_is_clipped_in_place_and_says_how_much_is_left() -> None:
    line = tree({"body": "x" * 5_000}).lines[1]
    assert len(line.text) == 2_048
    assert line.text + line.rest == "x" * 5_000
    assert line.more.startswith("show all, 4.9")


def test_a_text_of_ten_thousand_lines_hides_nothing_below_it() -> None:
    line = tree({"note": "\n" * 10_000, "amount": "9 000"}).lines[1]
    assert line.text.count("\n") == 12
    assert "9989 more lines" in line.more


def test_a_secret_is_masked_before_the_text_around_it_is_clipped() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIabc\n" * 600 + "-----END PRIVATE KEY-----"
    found = drawn(tree({"note": "x" * 2_000 + key}))
    assert "MIIabc" not in found
    assert "masked (private key)" in found


def test_names_and_texts_are_drawn_as_text() -> None:
    found = drawn(tree({"<script>": "<img src=x onerror=alert(1)> \u202e \x1b[31m", "é/~": 1}))
    assert "<script>" not in found
    assert "<img" not in found
    assert "⟨U+202E⟩" in found
    assert "␛[31m" in found
    assert 'title="/é~1~0"' in found


def test_every_branch_that_is_opened_is_closed() -> None:
    found = drawn(tree({"a": [1, [2, {"b": []}]], "c": "x" * 3_000}))
    for tag in ("ul", "li", "details"):
        assert found.count(f"<{tag}") - found.count(f"<{tag}n") == found.count(f"</{tag}>")


def test_binary_is_described_and_never_shown() -> None:
    found = payloads.of_body(b"\x89PNG\x00", media_type="image/png", why_not_json="It is no JSON.",
                             title="Result", source=payloads.FROM_TOOL)  # fmt: skip
    assert found.is_binary
    assert "PNG" not in drawn(found)
    assert "5\xa0bytes" in drawn(found)


def test_a_result_that_is_text_keeps_its_lines() -> None:
    found = payloads.of_body(b"one\ntwo password=hunter2", media_type="text/plain",
                             why_not_json="It is no JSON.", title="Result",
                             source=payloads.FROM_TOOL)  # fmt: skip
    assert "one\ntwo password=•••• masked (password)" in drawn(found)
    assert "from the tool, not checked" in drawn(found)


def test_a_download_is_masked_too() -> None:
    assert b"hunter2" not in payloads.whole_text(b'{"password": "hunter2"}', "")
    assert b"hunter2" not in payloads.whole_text(b"password=hunter2", "no JSON")
    cut_within_a_character = "password=hunter2 €".encode()[:-1]
    assert b"hunter2" not in payloads.whole_text(cut_within_a_character, "it was cut")
    assert payloads.whole_text(b"\x00\xff", "no JSON") == b"\x00\xff"


def test_only_a_payload_with_a_download_says_that_the_rest_is_there() -> None:
    text = "x" * 40_000
    given = {"title": "Error", "source": payloads.FROM_TOOL}
    assert "7232 more characters are not shown" in drawn(payloads.of_text(text, **given))
    found = drawn(payloads.of_text(text, download="/calls/c/partial", **given))
    assert "7232 more characters are in the download" in found


def test_a_data_value_is_described_by_type_size_and_digest_and_never_shown() -> None:
    picture = b"\x89PNG" + bytes(60)
    value = "data:image/png;base64," + base64.b64encode(picture).decode()
    line = tree({"image": value}).lines[1]
    assert line.kind == "data"
    assert line.text == f"data: image/png, 64 bytes, sha256 {hashlib.sha256(picture).hexdigest()}"
    page = drawn(tree({"image": value, "note": "data:,a%20b", "broken": "data:a/b;base64,%%"}))
    assert "iVBOR" not in page
    assert "data: text/plain, 3 bytes" in page
    assert "data: a/b, 2 bytes" in page


def test_text_that_only_begins_like_a_data_value_is_shown() -> None:
    assert tree({"note": "data: see the list, row 7"}).lines[1].text == "data: see the list, row 7"


def test_a_tree_with_a_download_is_shown_raw_and_copied_from_there() -> None:
    found = tree({"a": 1}, download="/calls/c/arguments")
    assert (found.raw, found.copied_from) == ("/calls/c/arguments?view=raw", "/calls/c/arguments")
    page = drawn(found)
    assert 'href="/calls/c/arguments?view=raw"' in page
    assert 'data-copying="/calls/c/arguments"' in page
    assert drawn(tree({"a": 1})).count("Raw") == 0


def test_what_stands_whole_on_the_page_is_copied_from_it_and_what_is_large_from_nowhere() -> None:
    def of(text: str) -> Payload:
        return payloads.of_text(text, title="Error", source=payloads.FROM_TOOL)

    assert [of(text).copied_from for text in ("short", "x" * 3_000, "x" * 40_000)] == [
        "page", "page", "",
    ]  # fmt: skip
    assert "data-copying" not in drawn(of("x" * 40_000))
    large = tree({"a": "x"}, size_bytes=300_000, download="/calls/c/result")
    assert (large.copied_from, large.is_copied) == ("", False)


def test_raw_json_is_as_it_came_unless_something_in_it_is_masked() -> None:
    plain, secret = b'{"b":1,  "a":2.50}', b'{"password":"hunter2","a":1}'
    assert payloads.whole_text(plain, "", tidy=False) == plain
    assert b"hunter2" not in payloads.whole_text(secret, "", tidy=False)
    found = payloads.of_body(plain, media_type="application/json", why_not_json="", raw=True,
                             title="Result", source=payloads.FROM_TOOL)  # fmt: skip
    assert (found.text, found.lines) == (plain.decode(), [])


def test_every_payload_but_bytes_can_be_drawn_without_wrapping() -> None:
    assert 'class="wraps"' in drawn(tree({"a": 1}))
    found = payloads.of_body(b"\xff\x00", media_type="", why_not_json="It is no JSON.",
                             title="Result", source=payloads.FROM_TOOL)  # fmt: skip
    assert 'class="wraps"' not in drawn(found)
