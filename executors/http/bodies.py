"""Decoding the body of an answer under caps, as it arrives.

A body is cut, never refused: the answer's status has already told what happened. The
decoder asks zlib for no more than the caps allow, so a bomb costs what the caps cost.
"""

import zlib
from dataclasses import dataclass, field

MAX_DECODED = 10 * 1024 * 1024
"""Bytes of a decoded answer (security, 3.5)."""

MAX_RATIO = 100
"""Decoded bytes per received byte (security, 3.5)."""

WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


@dataclass(slots=True)
class Body:
    """The bytes of an answer so far. `cut` is a sentence once they are known to be incomplete."""

    encoding: str = ""
    cut: str = ""
    received: int = 0
    _full: bool = False
    _head: bytes = b""
    _decoded: bytearray = field(default_factory=bytearray)
    _inflater: "zlib._Decompress | None" = None

    def __post_init__(self) -> None:
        self.encoding = self.encoding.strip().lower()
        if self.encoding in WINDOW_BITS:
            self._inflater = zlib.decompressobj(WINDOW_BITS[self.encoding])
        elif self.encoding not in ("", "identity"):
            self.cut = f"The answer is encoded as {self.encoding[:40]!r}, which is not read here."

    @property
    def content(self) -> bytes:
        return bytes(self._decoded)

    def feed(self, chunk: bytes) -> bool:
        """Take one chunk; return whether more is wanted."""
        self.received += len(chunk)
        if self._inflater is None:
            self._take(chunk)
        elif self.encoding == "deflate" and self.received - len(chunk) < 2:
            self._inflate(self._with_head(chunk))
        else:
            self._inflate(chunk)
        return not self._full

    def finish(self) -> None:
        """The peer has sent all it wanted to send."""
        if self._inflater is not None and not self._inflater.eof and not self.cut and self.received:
            self.cut = "The compressed body ends before its end."

    def _take(self, piece: bytes) -> None:
        room = MAX_DECODED - len(self._decoded)
        self._decoded += piece[:room]
        if len(piece) > room:
            self._stop(f"The answer is longer than {MAX_DECODED} bytes.")

    def _stop(self, reason: str) -> None:
        self.cut, self._full = reason, True

    def _inflate(self, chunk: bytes) -> None:
        while chunk and not self.cut and self._inflater is not None:
            allowance = MAX_RATIO * self.received - len(self._decoded)
            room = min(allowance, MAX_DECODED - len(self._decoded))
            try:
                piece = self._inflater.decompress(chunk, max(room, 0) + 1)
            except zlib.error:
                self._stop("The compressed body cannot be decoded.")
                return
            if len(piece) > allowance:
                self._stop(f"The answer unpacks to more than {MAX_RATIO} times its size.")
                piece = piece[: max(allowance, 0)]
            self._take(piece)
            chunk = self._rest()

    def _rest(self) -> bytes:
        """What the inflater has not read: more of this member, or the next one (RFC 1952, 2.2)."""
        assert self._inflater is not None  # noqa: S101  (narrowing for the type checker)
        if not self._inflater.eof:
            return self._inflater.unconsumed_tail
        following = self._inflater.unused_data
        if following:
            self._inflater = zlib.decompressobj(WINDOW_BITS[self.encoding])
        return following

    def _with_head(self, chunk: bytes) -> bytes:
        """Hold back the first two bytes, which tell deflate with a header from raw deflate.

        Some servers send the raw one under the same name (RFC 9110, 8.4.1.2).
        """
        chunk, self._head = self._head + chunk, b""
        if len(chunk) < 2:
            self._head, chunk = chunk, b""
        elif chunk[0] & 15 != 8 or int.from_bytes(chunk[:2], "big") % 31:
            self._inflater = zlib.decompressobj(-15)
        return chunk
