"""What a command writes: read as it comes, hashed whole, kept up to a cap.

Ten gigabytes of output cost ten gigabytes of reading and no memory. Both streams are read at
once, so that neither can block the command; its input is written meanwhile.
"""

import contextlib
import hashlib
import os
import select
from collections import deque
from dataclasses import dataclass, field
from typing import IO

_CHUNK_BYTES = 1 << 18
_TAIL_BYTES = 64 * 1024


@dataclass(slots=True)
class Capture:
    """One stream: its first `cap` bytes, its last 64 KiB, its length and its hash."""

    cap: int
    head: bytearray = field(default_factory=bytearray)
    size: int = 0
    forwarded: int = 0
    _tail: deque[bytes] = field(default_factory=deque)
    _tail_bytes: int = 0
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.size += len(chunk)
        self._digest.update(chunk)
        if len(self.head) < self.cap:
            self.head += chunk[: self.cap - len(self.head)]
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes - len(self._tail[0]) >= _TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    @property
    def truncated(self) -> bool:
        return self.size > self.cap

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def tail(self, size_bytes: int) -> str:
        """The last bytes as text; what is not UTF-8 is replaced."""
        return b"".join(self._tail)[-size_bytes:].decode("utf-8", "replace")

    def news(self, size_bytes_max: int) -> bytes | None:
        """The kept bytes that were not given by an earlier call; None when there are none."""
        chunk = bytes(self.head[self.forwarded : self.forwarded + size_bytes_max])
        self.forwarded += len(chunk)
        return chunk or None


class Streams:
    """A command's three pipes, served together."""

    def __init__(
        self, *, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes], given: bytes, cap: int
    ) -> None:
        self.stdout, self.stderr = Capture(cap), Capture(_TAIL_BYTES)
        self._readers = {stdout.fileno(): self.stdout, stderr.fileno(): self.stderr}
        self._stdin, self._given = stdin, memoryview(given)
        self._poll = select.poll()
        for descriptor in self._readers:
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)
        os.set_blocking(stdin.fileno(), False)
        self._poll.register(stdin.fileno(), select.POLLOUT)
        self._write()

    @property
    def ended(self) -> bool:
        """Whether both outputs were closed by everybody who held them."""
        return not self._readers

    def watch(self, descriptor: int) -> None:
        """Also wake from `serve` when this descriptor becomes readable."""
        self._poll.register(descriptor, select.POLLIN)

    def serve(self, timeout_s: float) -> None:
        """Move what can be moved now, waiting up to `timeout_s` for the first of it."""
        for descriptor, _ in self._poll.poll(max(0.0, timeout_s) * 1000):
            if descriptor in self._readers:
                self._read(descriptor)
            elif not self._stdin.closed and descriptor == self._stdin.fileno():
                self._write()

    def _read(self, descriptor: int) -> None:
        with contextlib.suppress(BlockingIOError):
            if chunk := os.read(descriptor, _CHUNK_BYTES):
                self._readers[descriptor].add(chunk)
                return
            self._poll.unregister(descriptor)
            del self._readers[descriptor]

    def _write(self) -> None:
        try:
            while self._given:
                self._given = self._given[os.write(self._stdin.fileno(), self._given) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._given = self._given[:0]  # a command need not read what it is given
        self._poll.unregister(self._stdin.fileno())
        self._stdin.close()
