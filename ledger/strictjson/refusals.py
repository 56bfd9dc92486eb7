"""Why a text or value is not strict JSON: one code, one pointer, one sentence.

A sentence carries limits, never what was sent. A pointer names keys of the input, so it is
made printable: a lone surrogate in it would break the answer that reports it.
"""

import re
from enum import StrEnum
from typing import Any

JSON = Any  # a strict JSON value: None, bool, int, float, str, list or dict of the same

POINTER_CHARACTERS_MAX = 512
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd]")


class Code(StrEnum):
    """The refusals, each with its meaning in `SENTENCES`."""

    PAYLOAD_TOO_LARGE = "payload_too_large"
    MEDIA_TYPE = "media_type"
    BYTE_ORDER_MARK = "byte_order_mark"
    NOT_UTF8 = "not_utf8"
    SYNTAX = "syntax"
    TRAILING_TEXT = "trailing_text"
    TOO_DEEP = "too_deep"
    TOO_MANY_NODES = "too_many_nodes"
    TOO_MANY_ITEMS = "too_many_items"
    KEY_TOO_LONG = "key_too_long"
    STRING_TOO_LONG = "string_too_long"
    DUPLICATE_KEY = "duplicate_key"
    NOT_FINITE = "not_finite"
    NUMBER_TOO_SMALL = "number_too_small"
    NUMBER_TOO_LONG = "number_too_long"
    INTEGER_TOO_LARGE = "integer_too_large"
    NUL_CHARACTER = "nul_character"
    LONE_SURROGATE = "lone_surrogate"
    NONCHARACTER = "noncharacter"
    KEY_NOT_TEXT = "key_not_text"
    NOT_JSON = "not_json"


SENTENCES = {
    Code.PAYLOAD_TOO_LARGE: "The JSON is larger than {limit} bytes. Send less, or a reference.",
    Code.MEDIA_TYPE: (
        "The body is not plain application/json in UTF-8, so it was not read. Send "
        "Content-Type: application/json, no other charset and no Content-Encoding."
    ),
    Code.BYTE_ORDER_MARK: (
        "The body begins with a byte order mark, which is not JSON. Send UTF-8 without one."
    ),
    Code.NOT_UTF8: "The body is not valid UTF-8, so its text is unknown. Encode it as UTF-8.",
    Code.SYNTAX: "The body is not one JSON document: it cannot be read from byte {at} on. Mend it.",
    Code.TRAILING_TEXT: (
        "Something follows the JSON document at byte {at}. Send exactly one document a request."
    ),
    Code.TOO_DEEP: "Arrays and objects nest deeper than {limit} levels. Flatten the value.",
    Code.TOO_MANY_NODES: "There are more than {limit} values in the document. Send fewer.",
    Code.TOO_MANY_ITEMS: "An array holds more than {limit} items. Split it.",
    Code.KEY_TOO_LONG: "A key is longer than {limit} characters. Shorten it.",
    Code.STRING_TOO_LONG: "A string is longer than {limit} bytes of UTF-8. Send a reference.",
    Code.DUPLICATE_KEY: (
        "An object names a key twice, or two spellings of one key (Unicode NFC), so readers would "
        "disagree about its value. Name each key once."
    ),
    Code.NOT_FINITE: (
        "A number is infinite or not a number, which JSON cannot say. Send a finite number, null "
        "or a string."
    ),
    Code.NUMBER_TOO_SMALL: (
        "A number has an exponent too small for a double, so its value would be lost. Send 0 or a "
        "string."
    ),
    Code.NUMBER_TOO_LONG: "A number is longer than {limit} characters. Send it as a string.",
    Code.INTEGER_TOO_LARGE: (
        "An integer is beyond {limit} (2^53 - 1), where readers begin to round. Send it as a "
        "string."
    ),
    Code.NUL_CHARACTER: (
        "A string contains the character U+0000, which the record cannot hold. Remove it."
    ),
    Code.LONE_SURROGATE: (
        "A string contains half of a surrogate pair, which is no character. Send whole characters."
    ),
    Code.NONCHARACTER: (
        "A string contains a code point that Unicode reserves as a noncharacter. Remove it."
    ),
    Code.KEY_NOT_TEXT: "An object has a key that is not a string. Use strings as keys.",
    Code.NOT_JSON: (
        "A value is none of null, true, false, integer, float, string, array (list) and object "
        "(dict), so it has no JSON form. Convert it first."
    ),
}

PROBLEMS = {
    Code.PAYLOAD_TOO_LARGE: ("payload_too_large", 413),
    Code.MEDIA_TYPE: ("media_type", 415),
}
VALIDATION = ("validation", 422)


class NotStrict(Exception):
    """What was sent is not strict JSON, or is larger than this edge accepts. Nothing is kept.

    `code` says which rule was broken, `problem` and `http` what an API answers (RFC 9457),
    `pointer` where (RFC 6901; empty: the whole document, or no place can be named).
    """

    def __init__(self, code: Code, *, limit: int = 0, at: int = 0) -> None:
        self.code = code
        self.sentence = SENTENCES[code].format(limit=limit, at=at)
        self._tokens: list[str | int] = []
        super().__init__(self.sentence)

    @property
    def problem(self) -> str:
        return PROBLEMS.get(self.code, VALIDATION)[0]

    @property
    def http(self) -> int:
        return PROBLEMS.get(self.code, VALIDATION)[1]

    @property
    def pointer(self) -> str:
        whole = "".join(f"/{_escaped(token)}" for token in reversed(self._tokens))
        return whole[:POINTER_CHARACTERS_MAX]

    def within(self, token: str | int) -> "NotStrict":
        """The same refusal, seen from the array or object that holds the place."""
        self._tokens.append(token)
        return self


def _escaped(token: str | int) -> str:
    text = str(token).replace("~", "~0").replace("/", "~1")
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
