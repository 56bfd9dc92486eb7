"""The line between a tool child and its holder: frames over a socket pair.

A frame is `length of the message, length of the payload, message (JSON), payload (bytes)`. The
tool child asks and waits; the holder receives with a limit in time and answers. Both lengths are
capped before a byte is kept, so a tool cannot fill the holder's memory.

Never: unpickle, or wait without a limit on the holder's side.
"""

import contextlib
import json
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from typing import Any

MESSAGE_BYTES_MAX = 4 * 1024 * 1024
PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
"""The cap of a stored result (security, section 2, rule 7)."""

_HEADER = struct.Struct("!IQ")
_ANSWER_LIMIT_S = 5.0
_CHUNK = 1 << 20


class ChannelClosed(Exception):
    """The other side is gone. Stop, send nothing more outside, and leave."""


class FrameRefused(Exception):
    """A frame is longer than the cap, or not what a frame is. The channel cannot go on."""


@dataclass(frozen=True, slots=True)
class Message:
    """One frame as received: a JSON object, and the raw bytes that came with it."""

    body: dict[str, Any]
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Closed:
    """No further message will come: the tool child ended, or sent what is not a frame."""

    reason: str = "The tool child closed its channel."


def encode(body: dict[str, Any], payload: bytes = b"") -> bytes:
    """Make one frame's head and message; the payload follows unchanged.

    Raises FrameRefused when either is longer than its cap, before anything is sent.
    """
    text = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    _within(len(text), len(payload))
    return _HEADER.pack(len(text), len(payload)) + text


def _within(message_bytes: int, payload_bytes: int) -> None:
    if message_bytes > MESSAGE_BYTES_MAX or payload_bytes > PAYLOAD_BYTES_MAX:
        raise FrameRefused(
            f"A frame of {message_bytes} + {payload_bytes} bytes is longer than "
            f"{MESSAGE_BYTES_MAX} + {PAYLOAD_BYTES_MAX}. Cut the payload and say so in the message."
        )


@dataclass(slots=True)
class _Reader:
    """Bytes as they come, until they make a frame."""

    buffer: bytearray = field(default_factory=bytearray)

    def take(self) -> Message | None:
        """Give the next whole frame, or None while one is missing bytes."""
        if len(self.buffer) < _HEADER.size:
            return None
        message_bytes, payload_bytes = _HEADER.unpack_from(self.buffer)
        _within(message_bytes, payload_bytes)
        start, end = _HEADER.size, _HEADER.size + message_bytes
        if len(self.buffer) < end + payload_bytes:
            return None
        body, payload = (
            _parsed(self.buffer[start:end]),
            bytes(self.buffer[end : end + payload_bytes]),
        )
        del self.buffer[: end + payload_bytes]
        return Message(body, payload)


def _parsed(text: bytearray) -> dict[str, Any]:
    try:
        body = json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise FrameRefused("The tool child sent a message that is not JSON.") from error
    if not isinstance(body, dict):
        raise FrameRefused("The tool child sent a message that is not a JSON object.")
    return body


class Channel:
    """The tool child's end. One request at a time; threads of the tool wait for each other."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(True)
        self._line, self._reader, self._turn = line, _Reader(), threading.Lock()

    def request(self, message: dict[str, Any], payload: bytes = b"") -> dict[str, Any]:
        """Send a message and wait for its answer, however long that takes.

        Raises ChannelClosed when the holder is gone, FrameRefused when the frame is too long.
        """
        head = encode(message, payload)
        with self._turn:
            try:
                self._line.sendall(head)
                self._line.sendall(payload)
                return self._answer()
            except OSError as error:
                raise ChannelClosed(_GONE) from error

    def _answer(self) -> dict[str, Any]:
        while (answer := self._reader.take()) is None:
            chunk = self._line.recv(_CHUNK)
            if not chunk:
                raise ChannelClosed(_GONE)
            self._reader.buffer += chunk
        return answer.body


_GONE = "The holder of this attempt is gone, so nothing can be recorded. Stop and send nothing."


class HolderEnd:
    """The holder's end: receives within a limit and never blocks on a stopped tool for long."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(False)
        self._line, self._reader = line, _Reader()
        self._closed: Closed | None = None

    def fileno(self) -> int:
        """Give the descriptor to select on; -1 once closed."""
        return self._line.fileno()

    def receive(self, timeout_s: float) -> Message | Closed | None:
        """Wait up to `timeout_s` for a message; None when none has come whole by then."""
        until = time.monotonic() + timeout_s
        while self._closed is None:
            try:
                if (message := self._reader.take()) is not None:
                    return message
                self._read(until)
            except FrameRefused as refusal:
                self._closed = Closed(str(refusal))
            except TimeoutError:
                return None
        return self._closed

    def _read(self, until: float) -> None:
        _wait(self._line, select.POLLIN, until)
        try:
            chunk = self._line.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._closed = Closed()
        self._reader.buffer += chunk

    def answer(self, message: dict[str, Any]) -> bool:
        """Send the answer to the last request; False when the tool cannot take it any more."""
        rest, until = memoryview(encode(message)), time.monotonic() + _ANSWER_LIMIT_S
        try:
            while rest:
                _wait(self._line, select.POLLOUT, until)
                with contextlib.suppress(BlockingIOError):
                    rest = rest[self._line.send(rest, socket.MSG_NOSIGNAL) :]
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Hang up; a tool child that still asks is told so."""
        self._closed = self._closed or Closed("The holder closed the channel.")
        self._line.close()


def _wait(line: socket.socket, event: int, until: float) -> None:
    poll = select.poll()
    poll.register(line, event)
    if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        raise TimeoutError
