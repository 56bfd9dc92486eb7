"""Hostile submit bodies without end, made by breaking one good body in a known way.

Each mutation is named and says what must follow: `refused` by the strict reader, `refused` by
the schema of the submit, or `either` where chance decides. Whatever follows, it is never a 5xx.
The same seed gives the same bodies.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

Change = Callable[[random.Random, bytes], bytes]

READER, SCHEMA, NOBODY = "reader", "schema", ""
_MARK = '"@here@"'


@dataclass(frozen=True, slots=True)
class Mutant:
    """One body. `expect` is `refused` or `either`; `by` says who refuses it surely."""

    name: str
    body: bytes
    expect: str
    by: str


def generate(seed: int, count: int) -> Iterator[Mutant]:
    """`count` bodies; every mutation comes at least once in as many as there are."""
    dice = random.Random(seed)
    names = list(_MUTATIONS)
    dice.shuffle(names)
    for number in range(count):
        name = names[number % len(names)]
        by, change = _MUTATIONS[name]
        body = change(dice, a_submit(dice).encode())
        yield Mutant(name, body, "refused" if by else "either", by)


def a_submit(dice: random.Random) -> str:
    """A good body, with one argument marked as the place where a value can be put."""
    submit: dict[str, object] = {
        "tool": "sandbox.lookup",
        "arguments": {"query": _words(dice), "here": "@here@", "more": _value(dice, 3)},
        "tool_call_id": f"call_{dice.randrange(10**6)}",
        "model_step": dice.randrange(100),
        "position": dice.randrange(10),
    }
    return json.dumps(submit, ensure_ascii=dice.random() < 0.5)


def _words(dice: random.Random) -> str:
    return " ".join(dice.choice(("größe", "order", "日本", "😀", "a\\b", '"q"')) for _ in range(4))


def _value(dice: random.Random, depth: int) -> object:
    kind = dice.randrange(7 if depth else 5)
    if kind == 5:
        return [_value(dice, depth - 1) for _ in range(dice.randrange(4))]
    if kind == 6:
        return {f"k{n}": _value(dice, depth - 1) for n in range(dice.randrange(4))}
    return (None, True, dice.randrange(-(2**53) + 1, 2**53), dice.uniform(-1e9, 1e9), _words(dice))[
        kind
    ]


def _put(*values: str) -> Change:
    """Puts one of the texts in the place of the marked argument."""
    return lambda dice, body: body.replace(_MARK.encode(), dice.choice(values).encode())


def _put_bytes(*values: bytes) -> Change:
    return lambda dice, body: body.replace(b"@here@", dice.choice(values))


def _field(name: str, *values: object) -> Change:
    """Sets one field of the submit to one of the values."""

    def change(dice: random.Random, body: bytes) -> bytes:
        return json.dumps({**json.loads(body), name: dice.choice(values)}).encode()

    return change


def _without(name: str) -> Change:
    def change(_: random.Random, body: bytes) -> bytes:
        submit = json.loads(body)
        del submit[name]
        return json.dumps(submit).encode()

    return change


def _replaced(*bodies: str) -> Change:
    return lambda dice, _: dice.choice(bodies).encode()


def _cut(dice: random.Random, body: bytes) -> bytes:
    # The last byte closes the object, so no proper beginning is a document.
    return body[: dice.randrange(len(body))]


def _followed(dice: random.Random, body: bytes) -> bytes:
    return body + dice.choice((b"{}", b"\n[]", b" x", b"\0", b"}", b'"', b"\xc2\xa0"))


def _named_twice(dice: random.Random, body: bytes) -> bytes:
    twin = dice.choice((b'"tool":"sandbox.purchase",', b'"\\u0074ool":1,', b'"arguments":null,'))
    return b"{" + twin + body[1:]


def _deep(dice: random.Random, body: bytes) -> bytes:
    depth = dice.randrange(31, 3000)
    opened, closed = dice.choice(((b"[", b"]"), (b'{"a":', b"}")))
    return body.replace(_MARK.encode(), opened * depth + b"1" + closed * depth)


def _wide(dice: random.Random, body: bytes) -> bytes:
    return body.replace(_MARK.encode(), b"[" + b"0," * dice.randrange(20_000, 30_000) + b"0]")


def _long_number(dice: random.Random, body: bytes) -> bytes:
    return body.replace(_MARK.encode(), b"0." + b"1" * dice.randrange(63, 6000))


def _other_encoding(dice: random.Random, body: bytes) -> bytes:
    encoding = dice.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-8-sig"))
    return body.decode().encode(encoding)


def _flipped(dice: random.Random, body: bytes) -> bytes:
    flipped = bytearray(body)
    for _ in range(dice.randrange(1, 5)):
        flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
    return bytes(flipped)


def _spliced(dice: random.Random, body: bytes) -> bytes:
    start, end = sorted(dice.randrange(len(body)) for _ in range(2))
    return body[:start] + dice.choice((b"", dice.randbytes(4), body[start:end] * 2)) + body[end:]


def _many(size: int) -> Change:
    def change(_: random.Random, body: bytes) -> bytes:
        return b'{"calls":[' + b",".join([body] * size) + b"]}"

    return change


_STRANGE_JSON: tuple[object, ...] = (None, True, 7, 1.5, [], {}, ["x"], {"x": 1})
_MUTATIONS: dict[str, tuple[str, Change]] = {
    "cut": (READER, _cut),
    "followed": (READER, _followed),
    "key_twice": (READER, _named_twice),
    "key_twice_by_nfc": (READER, _put('{"\u00e9":1,"e\u0301":2}', '{"\\u00e9":1,"e\\u0301":2}')),
    "not_finite": (READER, _put("NaN", "Infinity", "-Infinity", "1e400", "-1e131071", "1E+309")),
    "lost_number": (READER, _put("1e-400", "0e-16000", "-1E-5000")),
    "large_integer": (READER, _put(str(2**53), str(-(2**53)), str(2**63), str(2**64), "9" * 64)),
    "long_number": (READER, _long_number),
    "bad_number": (READER, _put("01", "-", "+1", ".5", "1.", "1e", "0x1", "1_0", "--1", "\u0661")),
    "bad_literal": (
        READER,
        _put("True", "None", "undefined", "nul", "'x'", "[1,]", "{,}", "{a:1}"),
    ),
    "bad_escape": (READER, _put('"\\x41"', '"\\u12"', '"\\u+123"', '"\\"', '"\\u{41}"', '"\t"')),
    "nul": (READER, _put('"\\u0000"', '{"\\u0000":1}')),
    "surrogate": (READER, _put('"\\ud800"', '"\\udc00\\ud800"', '{"\\udfff":1}', '"\\ud800x"')),
    "noncharacter": (READER, _put('"\\uffff"', '"\ufdd0"', '{"\U0001fffe":1}', '"\\udbff\\udfff"')),
    "bad_utf8": (READER, _put_bytes(b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")),
    "raw_control": (READER, _put_bytes(b"\0", b"\x01", b"\n", b"\x1f")),
    "other_encoding": (READER, _other_encoding),
    "deep": (READER, _deep),
    "wide": (READER, _wide),
    "long_key": (READER, _put('{"' + "k" * 257 + '":1}')),
    "long_string": (READER, _put('"' + "x" * (256 * 1024 + 1) + '"')),
    "not_an_object": (SCHEMA, _replaced("null", "[]", "7", '"x"', "true", "1.5", "[[]]")),
    "no_tool": (SCHEMA, _without("tool")),
    "tool_strange": (SCHEMA, _field("tool", *_STRANGE_JSON)),
    "arguments_strange": (SCHEMA, _field("arguments", True, 7, 1.5, [], ["x"], "{}")),
    "session_strange": (
        SCHEMA,
        _field("session", 7, [], {}, "x", "../..", str(UUID(int=1)) + "\n"),
    ),
    "turn_strange": (SCHEMA, _field("turn", 7, [], {}, "' or 1=1", "0" * 5000)),
    "tool_call_id_strange": (SCHEMA, _field("tool_call_id", [], {}, ["x"], {"x": 1})),
    "model_step_strange": (SCHEMA, _field("model_step", [], {}, "first", 1.5)),
    "position_strange": (SCHEMA, _field("position", [], {}, "first", 1.5)),
    "calls_strange": (SCHEMA, _replaced('{"calls":7}', '{"calls":"x"}', '{"calls":[7]}')),
    "calls_101": (SCHEMA, _many(101)),
    "session_unknown": (NOBODY, _field("session", str(UUID(int=0)), str(UUID(int=2**128 - 1)))),
    "step_extreme": (NOBODY, _field("model_step", -1, 2**31, 2**53 - 1, -(2**53) + 1)),
    "unknown_fields": (NOBODY, _field("recovery_class", "read_only", None, {"state": "settled"})),
    "arguments_hostile": (NOBODY, _field("arguments", {"__proto__": 1}, {"query": "\u202e" * 999})),
    "flipped": (NOBODY, _flipped),
    "spliced": (NOBODY, _spliced),
}
