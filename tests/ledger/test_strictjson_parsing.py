"""What the strict reader takes, what it refuses, and where it says the fault is."""

import json

import pytest

from ledger.strictjson import (
    API,
    RESULT,
    TRANSCRIPT,
    Code,
    Limits,
    NotStrict,
    parse,
)

SMALL = Limits(size_bytes=200, depth=3, nodes=10, items=4, key_characters=5, string_bytes=12)


def refusal_of(body: bytes, limits: Limits = API) -> NotStrict:
    with pytest.raises(NotStrict) as caught:
        parse(body, limits=limits)
    return caught.value


def test_an_ordinary_submit_is_read_as_sent() -> None:
    body = (
        b'{"tool":"sandbox.lookup","arguments":{"q":"gr\\u00f6\xc3\x9fe","n":1,"x":1.0,"y":null}}'
    )
    read = parse(body)
    assert read == {
        "tool": "sandbox.lookup",
        "arguments": {"q": "größe", "n": 1, "x": 1.0, "y": None},
    }
    assert [type(read["arguments"][key]) for key in "nx"] == [int, float]


@pytest.mark.parametrize("body", [b"null", b"true", b"0", b'""', b" [ ] ", b"{}\r\n\t "])
def test_any_json_value_may_be_the_document(body: bytes) -> None:
    assert parse(body) == json.loads(body)


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        (b'{"a":{"b":[0,NaN]}}', Code.NOT_FINITE, "/a/b/1"),
        (b"[[],[1e999]]", Code.NOT_FINITE, "/1/0"),
        (b'{"x":{"n":1e-400}}', Code.NUMBER_TOO_SMALL, "/x/n"),
        (b'{"x":[9007199254740992]}', Code.INTEGER_TOO_LARGE, "/x/0"),
        (b'[{"a":1},{"a":1,"b":2,"a":3}]', Code.DUPLICATE_KEY, "/1/a"),
        (b'{"a":1e300,"b":{"c":1,"c":2}}', Code.DUPLICATE_KEY, "/b/c"),
        ('{"é":[{"é":1,"e\u0301":2}]}'.encode(), Code.DUPLICATE_KEY, "/é/0/e\u0301"),
        (b'{"a/b":{"m~n":"\\u0000"}}', Code.NUL_CHARACTER, "/a~1b/m~0n"),
        (b'{"":["\\ud800"]}', Code.LONE_SURROGATE, "//0"),
        (b'["\\uffff"]', Code.NONCHARACTER, "/0"),
    ],
)
def test_a_refusal_points_at_the_place(body: bytes, code: Code, pointer: str) -> None:
    refusal = refusal_of(body)
    assert (refusal.code, refusal.pointer) == (code, pointer)


@pytest.mark.parametrize("key", [b"\\ud800", b"\\u0000", b"\\uffff"])
def test_a_pointer_can_always_be_sent_and_stored(key: bytes) -> None:
    pointer = refusal_of(b'{"' + key + b'":{"a":1}}').pointer
    assert pointer == "/" + key.decode()
    assert pointer.encode().isascii()


def test_a_pointer_of_long_keys_is_cut() -> None:
    key = "k" * 256
    body = b'{"%s":' % key.encode() * 8 + b"NaN" + b"}" * 8
    assert len(refusal_of(body).pointer) == 512


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b" " * 201, Code.PAYLOAD_TOO_LARGE),
        (b"[[[[]]]]", Code.TOO_DEEP),
        (b'{"a":{"b":{"c":{}}}}', Code.TOO_DEEP),
        (b"[[1,1],[1,1,1],[1,1]]", Code.TOO_MANY_NODES),
        (b"[1,1,1,1,1]", Code.TOO_MANY_ITEMS),
        (b'{"abcdef":1}', Code.KEY_TOO_LONG),
        (b'["1234567890123"]', Code.STRING_TOO_LONG),
        ('["ééééééé"]'.encode(), Code.STRING_TOO_LONG),
    ],
)
def test_each_limit_refuses_one_more(body: bytes, code: Code) -> None:
    assert refusal_of(body, SMALL).code is code


@pytest.mark.parametrize(
    "body",
    [
        b" " * 196 + b"null",
        b"[[[]]]",
        b'{"a":{"b":{}}}',
        b"[[1,1],[1,1],[1,1]]",
        b"[1,1,1,1]",
        b'{"abcde":1}',
        b'["123456789012"]',
        '["éééééé"]'.encode(),
    ],
)
def test_each_limit_takes_just_as_much(body: bytes) -> None:
    assert parse(body, limits=SMALL) == json.loads(body)


def test_the_nodes_counted_are_the_nodes_there_are() -> None:
    exactly = Limits(**{**_fields(API), "nodes": 8})
    body = b'{"a":[1,2,{"b":[]}],"c":{"d":0}}'
    assert parse(body, limits=exactly)["c"] == {"d": 0}
    assert refusal_of(body, Limits(**{**_fields(API), "nodes": 7})).code is Code.TOO_MANY_NODES


def test_a_million_brackets_are_refused_before_the_parser_runs() -> None:
    assert refusal_of(b"[" * 1_000_000, TRANSCRIPT).code is Code.TOO_MANY_NODES
    assert refusal_of(b"[" * 300_000, TRANSCRIPT).code is Code.TOO_DEEP


def test_a_million_commas_are_refused_before_the_parser_runs() -> None:
    # Parsed, this would be an error of syntax: the array is never closed.
    assert refusal_of(b"[" + b"1," * 500_000).code is Code.TOO_MANY_NODES


@pytest.mark.parametrize("text", ['\\"' * 9, "\\\\" * 9, '\\\\\\"', "[[[[", '{"', "\\u005b" * 40])
def test_brackets_and_quotes_in_strings_are_only_text(text: str) -> None:
    inner = json.dumps(text)
    assert parse(f'[{inner},{{"k":{inner}}}]'.encode()) == [text, {"k": text}]


def test_the_sentence_never_repeats_what_was_sent() -> None:
    refusal = refusal_of(b'{"card":"4111111111111111\\u0000"}')
    assert "4111" not in refusal.sentence + str(refusal)
    assert refusal.sentence.endswith("Remove it.")


@pytest.mark.parametrize(
    ("body", "problem", "http"),
    [
        (b" " * (1024 * 1024 + 1), "payload_too_large", 413),
        (b"{", "validation", 422),
        (b'{"a":1,"a":1}', "validation", 422),
    ],
)
def test_a_refusal_knows_its_answer(body: bytes, problem: str, http: int) -> None:
    refusal = refusal_of(body)
    assert (refusal.problem, refusal.http) == (problem, http)


def test_every_code_has_its_own_sentence_with_a_remedy() -> None:
    sentences = {NotStrict(code, limit=3, at=3).sentence for code in Code}
    assert len(sentences) == len(Code)
    assert all(sentence.count(". ") >= 1 and sentence.endswith(".") for sentence in sentences)


def test_the_syntax_error_names_the_byte_not_the_character() -> None:
    assert "byte 8 " in refusal_of('["ää",x]'.encode()).sentence


def test_a_result_may_hold_a_longer_string_than_a_request() -> None:
    body = b'"' + b"x" * 300_000 + b'"'
    assert len(parse(body, limits=RESULT)) == 300_000
    assert refusal_of(body).code is Code.STRING_TOO_LONG


def _fields(limits: Limits) -> dict[str, int]:
    return {name: getattr(limits, name) for name in Limits.__slots__}
