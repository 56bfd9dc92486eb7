"""Files of entries: what was not touched comes back as it was written, to the byte."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standalone import transcript_files
from standalone.transcript_files import Illegible, TranscriptFile

SAID = st.text(max_size=8).filter(lambda text: text.isprintable())
ENTRY = st.fixed_dictionaries({"role": SAID, "content": SAID | st.integers() | st.lists(SAID)})
BLANK = st.sampled_from(["", " ", "\n", "\r\n", " \t", "\n\n  "])


def read(text: str) -> TranscriptFile:
    return transcript_files.read(text.encode())


@st.composite
def files(draw: st.DrawFn) -> str:
    """A file of any of the three kinds, its blanks and escapes as odd as JSON allows."""
    entries = draw(st.lists(ENTRY, min_size=1, max_size=6))
    texts = [
        json.dumps(each, ensure_ascii=draw(st.booleans()), separators=(", ", draw(BLANK) + ":"))
        for each in entries
    ]
    kind = draw(st.sampled_from(["lines", "array", "object"]))
    if kind == "lines":
        texts = [text.replace("\n", " ").replace("\r", " ") for text in texts]
        return "".join(f"{draw(BLANK)}{text}\n" for text in texts)
    array = f"[{draw(BLANK)}{(',' + draw(BLANK)).join(texts)}{draw(BLANK)}]"
    if kind == "array":
        return draw(BLANK) + array + draw(BLANK)
    return f'{{"system": [1.50],{draw(BLANK)}"messages" : {array}, "model": "m"}}'


def entries_of(file: TranscriptFile) -> list[Any]:
    found: list[Any] = file.value[file.member] if file.member else file.value
    return found


@given(files())
def test_a_file_whose_body_is_not_touched_is_written_back_to_the_byte(text: str) -> None:
    file = read(text)

    assert file.written(file.value) == text


@given(files(), st.data())
def test_an_entry_that_stays_keeps_its_own_bytes(text: str, data: st.DataObject) -> None:
    file = read(text)
    kept = [each for each in entries_of(file) if data.draw(st.booleans())]
    new = {"role": "tool", "content": "new — 新"}
    body = [*kept, new] if not file.member else file.value | {file.member: [*kept, new]}

    written = file.written(body)

    assert transcript_files.read(written.encode()).value == body
    for piece in file.pieces:
        if any(piece.value is each for each in kept):
            assert text[piece.start : piece.end] in written


def test_lines_stay_lines() -> None:
    file = read('{"n": 1.50}\n\n  {"n": 2}\n')

    assert file.written([file.value[1], {"n": 3}]) == '{"n": 2}\n{"n": 3}\n'


def test_the_rest_of_a_request_object_keeps_its_bytes() -> None:
    text = '{\n  "max_tokens": 1e3,\n  "messages": [{"a": 1}, {"a": 2}]\n}\n'
    file = read(text)

    assert file.written({**file.value, "messages": file.value["messages"][1:]}) == text.replace(
        '{"a": 1}, ', ""
    )


def test_a_body_of_another_shape_is_written_anew() -> None:
    file = read('{"messages": [{"a": 1}]}')

    assert json.loads(file.written({"contents": [{"b": 1}]})) == {"contents": [{"b": 1}]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"\xff\xfe", "Byte 0 is not UTF-8"),
        (b"hello", "neither"),
        (b"[1, 2", "end of the array is missing"),
        (b"[1 2]", "comma"),
        (b"[1,]", "missing at character 3"),
        (b"[1] []", "Something follows the array"),
        (b'{"a": 1}\n{"a": 2', "Line 2"),
        (b'{"a": 1} {"b": 2}', "something follows the entry"),
        (b'{"messages": [1], "messages": [1, 2]}', "twice"),
        (b'[{"a": NaN}]', "NaN is no JSON number"),
        (b'["\\ud800"]', "half of a surrogate pair"),
        (b"[" * 100_000, "too deep"),
        (b'{"a": 1}\n' + b'{"a":' * 100_000, "too deep"),
    ],
)
def test_what_is_no_transcript_is_refused_with_its_place(content: bytes, reason: str) -> None:
    with pytest.raises(Illegible, match=reason):
        transcript_files.read(content)
