"""From bytes to a strict value.

Before the parser runs, the text outside strings is laid bare with a few passes at C speed;
depth, number of values and length of numbers are judged on it, so the parser never recurses
or computes on what would be refused. Then the standard parser reads without hooks, and one
walk judges the values. Duplicate keys show as a difference between the colons outside strings
and the keys that arrived; only then a second, careful parse finds where they are.

The bare text is exact up to the first syntax error, and the parser never looks beyond it.
"""

import re
from itertools import accumulate
from json import JSONDecodeError, JSONDecoder

from ledger.strictjson.limits import API, NUMBER_CHARACTERS_MAX, Limits
from ledger.strictjson.refusals import JSON, Code, NotStrict
from ledger.strictjson.walking import Marked, Walk, may_hold_noncharacters

ZERO_EXPONENT_MAX = 400
"""How far the exponent of a zero may go; doubles that are not zero end at 10^-324."""

_BOMS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # +1 and -1 as signed bytes
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[{]}")))
_BETWEEN_TOKENS = bytes.maketrans(b"[]{},:", b"      ")
_WIDE_EXPONENT = re.compile(rb"[eE][+-]?[0-9]{3}")


def parse(body: bytes, *, limits: Limits = API) -> JSON:
    """Read exactly one strict JSON document.

    Integers stay `int`, numbers with a fraction or an exponent become `float` (`-0` is 0,
    `-0.0` stays -0.0). Strings are as sent. Raises NotStrict, and nothing else, for
    everything that security, section 2, rules 1 to 3 refuse.
    """
    text = _decoded(body, limits)
    bare = _outside_strings(body)
    _refuse_unreasonable(bare, limits)
    careful = _WIDE_EXPONENT.search(bare) is not None
    beyond_ascii = not body.isascii()
    escapes = b"\\u" in body
    walk = Walk(
        limits,
        search=escapes or (beyond_ascii and may_hold_noncharacters(body)),
        spellings=escapes or beyond_ascii,
    )
    value = _read(_CAREFUL if careful else _PLAIN, text)
    walk.visit(value)
    if walk.names != bare.count(b":"):
        Walk(limits).visit(_read(_CAREFUL, text))
    return value


def _decoded(body: bytes, limits: Limits) -> str:
    if len(body) > limits.size_bytes:
        raise NotStrict(Code.PAYLOAD_TOO_LARGE, limit=limits.size_bytes)
    if body.startswith(_BOMS):
        raise NotStrict(Code.BYTE_ORDER_MARK)
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise NotStrict(Code.NOT_UTF8) from None


def _outside_strings(body: bytes) -> bytes:
    # Pairs of backslashes go first, so that every \" left over is an escaped quote.
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(body.split(b'"')[::2])


def _refuse_unreasonable(bare: bytes, limits: Limits) -> None:
    opened = bare.count(b"[") + bare.count(b"{")
    # A document holds more values than commas, and at least one value per bracket.
    if max(opened, bare.count(b",") + 1) > limits.nodes:
        raise NotStrict(Code.TOO_MANY_NODES, limit=limits.nodes)
    if opened > limits.depth and _depth(bare) > limits.depth:
        raise NotStrict(Code.TOO_DEEP, limit=limits.depth)
    if len(bare) > NUMBER_CHARACTERS_MAX and _has_long_number(bare):
        raise NotStrict(Code.NUMBER_TOO_LONG, limit=NUMBER_CHARACTERS_MAX)


def _depth(bare: bytes) -> int:
    return max(accumulate(memoryview(bare.translate(_STEPS, _NOT_BRACKETS)).cast("b")))


def _has_long_number(bare: bytes) -> bool:
    tokens = bare.translate(_BETWEEN_TOKENS).split()
    if max(map(len, tokens), default=0) <= NUMBER_CHARACTERS_MAX:
        return False
    long = (token for token in tokens if len(token) > NUMBER_CHARACTERS_MAX)
    return any(token[0] in b"-0123456789" for token in long)


def _read(decoder: JSONDecoder, text: str) -> JSON:
    try:
        return decoder.decode(text)
    except JSONDecodeError as error:
        at = len(text[: error.pos].encode())
        trailing = error.msg == "Extra data"
        raise NotStrict(Code.TRAILING_TEXT if trailing else Code.SYNTAX, at=at) from None


def _marked_if_twice(pairs: list[tuple[str, JSON]]) -> JSON:
    members: dict[str, JSON] = {}
    for key, value in pairs:
        if key in members:
            return Marked(Code.DUPLICATE_KEY, key)
        members[key] = value
    return members


def _marked_if_lost(token: str) -> JSON:
    # 1e-400 reads as 0, and 0e-16000 would grow to 16 KB in a numeric.
    number = float(token)
    if number != 0.0:
        return number
    mantissa, _, exponent = token.lower().partition("e")
    lost = mantissa.strip("-0.") != "" or abs(int(exponent or "0")) > ZERO_EXPONENT_MAX
    return Marked(Code.NUMBER_TOO_SMALL) if lost else number


_PLAIN = JSONDecoder()
_CAREFUL = JSONDecoder(object_pairs_hook=_marked_if_twice, parse_float=_marked_if_lost)
