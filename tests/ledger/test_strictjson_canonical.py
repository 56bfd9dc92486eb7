"""The canonical form against RFC 8785, and where it differs on purpose."""

import struct

import pytest

from ledger.strictjson import Code, NotStrict, canonical, digest, parse, read_jsonb

# RFC 8785, appendix B: the bits of a double and its text. Integral ones get `.0` here.
RFC_NUMBERS = {
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992.0",
    "c340000000000000": "-9007199254740992.0",
    "4430000000000000": "295147905179352830000.0",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000.0",
    "444b1ae4d6e2ef4f": "999999999999999900000.0",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), RFC_NUMBERS.items())
def test_doubles_are_written_as_ecmascript_does(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number) == text.encode()
    assert canonical([number, "x"]) == f'[{text},"x"]'.encode()


def test_the_example_of_the_rfc() -> None:
    body = rb"""{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"""
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical(parse(body)) == expected.encode()


def test_keys_are_in_order_of_utf_16_code_units() -> None:
    keys = ["\r", "1", "\x80", "ö", "€", "\U0001f600", "\ufb33"]
    written = parse(canonical(dict.fromkeys(reversed(keys), 1)))
    assert list(written) == keys


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\b\t\n\f\r", r"\b\t\n\f\r"),
        ('"\\', r"\"\\"),
        ("\x01\x1f", r"\u0001\u001f"),
        ("/\x7f\u2028é😀", "/\x7f\u2028é😀"),
    ],
)
def test_only_what_must_be_escaped_is_escaped(text: str, escaped: str) -> None:
    assert canonical(text) == f'"{escaped}"'.encode()
    # An exponent beside it sends the value through the slow writer.
    assert canonical([text, 1e21]) == f'["{escaped}",1e+21]'.encode()


def test_integers_and_floats_are_different_arguments() -> None:
    assert canonical({"n": 1}) == b'{"n":1}'
    assert canonical({"n": 1.0}) == b'{"n":1.0}'
    assert len({digest(1), digest(1.0), digest("1"), digest(True)}) == 4


def test_the_sign_of_zero_is_no_difference() -> None:
    assert canonical(-0.0) == canonical(0.0) == b"0.0"
    assert canonical(parse(b"-0")) == b"0"
    assert digest([-0.0]) == digest([0.0])


def test_key_order_and_whitespace_are_no_difference() -> None:
    assert digest(parse(b'{"a":1,"b":[2, 3]}')) == digest(parse(b'{ "b" : [2,3],"a":1 }'))


def test_spellings_of_a_text_are_a_difference() -> None:
    assert digest("é") != digest("e\u0301")


def test_the_digest_is_the_sha256_of_the_form() -> None:
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (float("nan"), Code.NOT_FINITE),
        ((1,), Code.NOT_JSON),
        ({1: 1}, Code.KEY_NOT_TEXT),
        (2**60, Code.INTEGER_TOO_LARGE),
        ("\ud800", Code.LONE_SURROGATE),
    ],
)
def test_what_is_not_strict_has_no_canonical_form(value: object, code: Code) -> None:
    with pytest.raises(NotStrict) as caught:
        canonical([value])
    assert (caught.value.code, caught.value.pointer[:2]) == (
        code,
        "/0" if code != "key_not_text" else "/0",
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.0", 1.0),
        ("1000000000000000000000", 1e21),
        ("9007199254740991", 2**53 - 1),
        ("-9007199254740991", -(2**53) + 1),
        ("-10000000000000000000000", -1e22),
        ("17976931348623157" + "0" * 292, 1.7976931348623157e308),
        ("0." + "0" * 323 + "5", 5e-324),
    ],
)
def test_what_jsonb_writes_is_read_back_as_it_was(text: str, value: object) -> None:
    read = read_jsonb(f"[{text}]")
    assert read == [value]
    assert type(read[0]) is type(value)
