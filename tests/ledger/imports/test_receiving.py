"""Reading what is imported: one document or one entry a line, its own bytes, its limits."""

import json

import pytest

from ledger.api.transcript_bodies import TranscriptTooLarge
from ledger.errors import Invalid
from ledger.imports import receiving
from ledger.imports.receiving import Received
from ledger.strictjson import NotStrict
from ledger.strictjson.limits import TRANSCRIPT

JSON, LINES = "application/json", "application/x-ndjson"
SAID = {"role": "user", "content": "Ordnung"}


def received(body: bytes, content_type: str = JSON, **more: str) -> Received:
    return receiving.received(body, content_type=content_type, **more)


def test_a_file_is_kept_byte_for_byte() -> None:
    body = b'[ {"role" : "user","content":"Ordnung"}\n]\n'

    found = received(body, format="openai-chat")

    assert (found.body, found.transcript) == (body, [SAID])


def test_the_member_of_an_object_is_kept_as_it_stands_in_it() -> None:
    body = (
        b'{"format": "openai-chat", "a": [1, {"transcript": 2}], "transcript" : [ {"role":"user",'
    )
    body += b'"content":"Ordnung"} ] , "session": {}}'

    found = received(body)

    assert found.body == b'[ {"role":"user","content":"Ordnung"} ]'
    assert found.transcript == [SAID]
    assert found.around == {"format": "openai-chat", "a": [1, {"transcript": 2}], "session": {}}


def test_the_same_transcript_has_one_digest_however_it_came() -> None:
    file = json.dumps([SAID]).encode()
    within = b'{"format":"openai-chat","transcript":' + file + b"}"

    assert received(within).sha256 == received(file, format="openai-chat").sha256


def test_lines_are_entries_and_blank_ones_are_none() -> None:
    body = b'{"role":"user","content":"a"}\n\n {"role":"user","content":"b"} \r\n'

    found = received(body, LINES, format="openai-chat")

    assert [each["content"] for each in found.transcript] == ["a", "b"]
    assert receiving.again(body, format="openai-chat", lines=True).transcript == found.transcript


def test_a_line_that_cannot_be_read_is_named_by_its_number() -> None:
    with pytest.raises(NotStrict) as refused:
        received(b'{"role":"user"}\n{"role":\n', LINES, format="openai-chat")

    assert refused.value.pointer == "/1"


def test_two_documents_in_one_line_are_refused() -> None:
    with pytest.raises(NotStrict, match="Something follows"):
        received(b'{"role":"user"},{"role":"user"}', LINES, format="openai-chat")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[" + b"0," * TRANSCRIPT.items + b"0]", "too_many_items"),
        (b"[" * 65 + b"]" * 65, "too_deep"),
        (b"[]" + b" " * TRANSCRIPT.size_bytes, "payload_too_large"),
    ],
)
def test_what_is_too_large_says_the_way_by_command_line(body: bytes, code: str) -> None:
    with pytest.raises(TranscriptTooLarge, match="transcript repair FILE") as refused:
        received(body, format="openai-chat")

    assert refused.value.facts["errors"][0]["detail"] == code


def test_millions_of_lines_are_refused_before_one_is_read() -> None:
    with pytest.raises(TranscriptTooLarge):
        received(b"{\n" * (TRANSCRIPT.items + 1), LINES, format="openai-chat")


@pytest.mark.parametrize("content_type", ["text/plain", "application/zip", "multipart/form-data"])
def test_another_media_type_is_not_read(content_type: str) -> None:
    with pytest.raises(NotStrict, match="not plain application/json"):
        received(b"[]", content_type, format="openai-chat")


def test_compressed_lines_are_not_read() -> None:
    with pytest.raises(NotStrict, match="not plain application/json"):
        received(b"[]", LINES, content_encoding="gzip", format="openai-chat")


def test_an_unknown_format_names_those_that_are_read() -> None:
    with pytest.raises(Invalid, match="openai-chat"):
        received(b"[]", format="telepathy")


def test_a_file_without_a_format_is_refused() -> None:
    with pytest.raises(Invalid, match="Name the format"):
        received(b"[]")


def test_two_formats_that_disagree_are_refused() -> None:
    with pytest.raises(Invalid, match="another format"):
        received(b'{"format":"anthropic","transcript":[]}', format="openai-chat")
