"""Results over the size cap: head and tail with a marker between that says so (T22).

Pairing is untouched; the stored result stays whole. Source: transcripts, part b.
"""

from dataclasses import replace
from hashlib import sha256

from ledger.transcripts.neutral import Opaque, Result, Text

SMALLEST_BYTES = 512
"""A cap below this would leave little but the marker."""


class CapTooSmall(ValueError):
    """A cap that leaves no room for the text around the marker."""

    def __init__(self, cap_bytes: int) -> None:
        super().__init__(
            f"A cap of {cap_bytes} bytes leaves no room for the text beside the marker. Ask for "
            f"at least {SMALLEST_BYTES} bytes."
        )


def is_over(result: Result, cap_bytes: int) -> bool:
    """Whether the text of a result is longer than the cap, in bytes of UTF-8."""
    text = result.text
    # A character has one byte at least and four at most: most texts need no encoding to tell.
    return len(text) > cap_bytes or (len(text) * 4 > cap_bytes and len(_bytes(text)) > cap_bytes)


def capped(result: Result, cap_bytes: int) -> Result:
    """The result with its text cut to the cap; what is no text stays behind it.

    Raises CapTooSmall.
    """
    if cap_bytes < SMALLEST_BYTES:
        raise CapTooSmall(cap_bytes)
    others = tuple(part for part in result.parts if isinstance(part, Opaque))
    return replace(result, parts=(Text(cut(result.text, cap_bytes)), *others))


def cut(text: str, cap_bytes: int) -> str:
    """Head and tail of a text around the marker: at most `cap_bytes` bytes of UTF-8 in all."""
    raw = _bytes(text)
    room = cap_bytes - len(_marker(len(raw), raw))
    head = raw[: room - room // 2].decode("utf-8", "ignore")
    tail = raw[len(raw) - room // 2 :].decode("utf-8", "ignore")
    left_out = len(raw) - len(_bytes(head)) - len(_bytes(tail))
    return head + _marker(left_out, raw).decode() + tail


def _marker(left_out: int, raw: bytes) -> bytes:
    digest = sha256(raw).hexdigest()
    return f"\n[truncated: {left_out} of {len(raw)} bytes left out, sha256:{digest}]\n".encode()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
