"""The canonical form: what is hashed and compared (security, section 2, rule 5).

RFC 8785 (keys in order of UTF-16 code units, shortest escapes, ECMAScript's shortest numbers)
with one difference: a float always shows a fraction or an exponent, so `1` and `1.0` are
different arguments (semantics, section 10, rule 2). The sign of a zero is no difference, as in
RFC 8785: -0.0 is written `0.0`, and `-0` is the integer 0.
"""

import re
from decimal import Decimal
from hashlib import sha256
from json import encoder

import orjson

from ledger.strictjson.limits import Limits
from ledger.strictjson.refusals import JSON
from ledger.strictjson.walking import Walk

_ENDLESS = 2**62
_FORM = Limits(
    size_bytes=_ENDLESS,
    depth=128,
    nodes=_ENDLESS,
    items=_ENDLESS,
    key_characters=_ENDLESS,
    string_bytes=_ENDLESS,
)
# orjson differs from the form only in exponents, in the sign of zero, and in the order of keys
# beyond the basic plane. Where its output may show one of them (inside a string, too), the slow
# writer decides.
_MAY_DIFFER = re.compile(rb"[0-9]e[+-]?[0-9]|-0\.0|[\xf0-\xf4]")


def canonical(value: JSON) -> bytes:
    """The canonical form as UTF-8. Raises NotStrict for what is not strict JSON.

    Sizes are not limited here, except a depth of 128; `parse` and `check` have judged them.
    """
    Walk(_FORM).visit(value)
    return encode(value)


def digest(value: JSON) -> str:
    """SHA-256 of the canonical form, 64 hexadecimal digits. Raises NotStrict."""
    return sha256(canonical(value)).hexdigest()


def encode(value: JSON) -> bytes:
    """The canonical form of a value that has been checked."""
    fast = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return written(value).encode() if _MAY_DIFFER.search(fast) else fast


def written(value: JSON) -> str:
    """The form by the letter, for any checked value; `encode` knows when it may be quicker."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_quoted(key)}:{written(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return _float(value) if isinstance(value, float) else orjson.dumps(value).decode()


def _quoted(text: str) -> str:
    # Escapes what JSON must escape and nothing else, \u in lower case (RFC 8785, 3.2.2.2).
    return encoder.encode_basestring(text)


def _float(number: float) -> str:
    """ECMA-262, Number::toString, but with `.0` where it would look like an integer."""
    if number == 0.0:
        return "0.0"
    sign, digits_, exponent = Decimal(repr(number)).as_tuple()
    digits = "".join(map(str, digits_)).rstrip("0")
    point = len(digits_) + int(exponent)  # digits before the decimal point
    return ("-" if sign else "") + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits)) + ".0"
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
