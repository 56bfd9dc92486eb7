"""Tool results: never refused, whatever they are.

The effect has happened, so a result that is not strict JSON is kept as bytes with a sentence
that says why, and the call settles as it would have (security, section 2, rule 7). A body that
was cut is never read as JSON: the first half of `12` is a valid document.
"""

import json
from dataclasses import dataclass
from hashlib import sha256

from ledger.strictjson.checking import check
from ledger.strictjson.limits import MIB, RESULT
from ledger.strictjson.media import is_json
from ledger.strictjson.parsing import parse
from ledger.strictjson.refusals import NotStrict

BLOB_BYTES_MAX = 64 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A result as it can be kept.

    `json_text`: the text as received, or `None` when it is not strict JSON of at most 1 MiB;
    `why_not_json` then says why. `body`: the bytes, at most 64 MiB. `sha256` and `size_bytes`
    are those of the whole result, also where `truncated` says that `body` is its beginning.
    """

    json_text: str | None
    body: bytes
    why_not_json: str
    sha256: str
    size_bytes: int
    truncated: bool


def storable(
    result: object,
    media_type: str = "application/json",
    *,
    truncated: bool = False,
    full_sha256: str = "",
    full_size_bytes: int | None = None,
) -> Stored:
    """Turn what a tool brought into what can be kept. Never raises.

    `result` is bytes, described by `media_type`, or the Python value a tool returned. The
    keywords are those of a result that was already cut; without a full hash the hash is that
    of the bytes in hand.
    """
    if isinstance(result, bytes | bytearray | memoryview):
        body = bytes(result)
        why_not = _why_cut(body, truncated) or _why_not_json(body, media_type)
    else:
        body, why_not = _from_value(result)
    return Stored(
        json_text=None if why_not else body.decode(),
        body=body[:BLOB_BYTES_MAX],
        why_not_json=why_not,
        sha256=full_sha256 or sha256(body).hexdigest(),
        size_bytes=len(body) if full_size_bytes is None else full_size_bytes,
        truncated=truncated or len(body) > BLOB_BYTES_MAX,
    )


def _why_cut(body: bytes, truncated: bool) -> str:
    if truncated or len(body) > BLOB_BYTES_MAX:
        return "The result was cut at a size limit, so only its beginning is kept, as bytes."
    return ""


def _why_not_json(body: bytes, media_type: str) -> str:
    if not is_json(media_type):
        return "The tool did not call its result JSON, so it is kept as bytes."
    try:
        parse(body, limits=RESULT)
    except NotStrict as refusal:
        return _kept_as_bytes(refusal)
    return ""


def _from_value(value: object) -> tuple[bytes, str]:
    """The bytes of a tool's return value, and why they are not JSON (empty: they are)."""
    try:
        check(value, limits=RESULT)
    except NotStrict as refusal:
        return _shown(value), _kept_as_bytes(refusal)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), ""


def _shown(value: object) -> bytes:
    # A repr is the tool's own code: it may raise anything, and the effect has still happened.
    try:
        text = value if type(value) is str else repr(value)
        return text.encode(errors="backslashreplace")
    except Exception as error:
        return f"<{type(value).__name__} without a text: {type(error).__name__}>".encode()


def _kept_as_bytes(refusal: NotStrict) -> str:
    where = f" (at {refusal.pointer})" if refusal.pointer else ""
    return f"The result is kept as bytes, because it is not strict JSON{where}: {refusal.sentence}"
