"""How the sandbox tools talk to the sandbox's HTTP server.

Connecting and sending are two steps, so that a tool can cross its boundary between them: a
failure of the first proves that nothing began, a failure of the second proves nothing.
"""

import http.client
import json
import socket
import struct
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from executors.contract import Context
from executors.python import NotBegun, Refused, Unproven
from ledger.vocabulary import Cause
from sandbox import addresses

CONNECT_S = 3.0
ANSWER_BYTES_MAX = 4 * 1024 * 1024
REFUSALS = {
    400: Cause.VALIDATION,
    401: Cause.AUTH,
    403: Cause.PERMISSION,
    404: Cause.NOT_FOUND,
    409: Cause.CONFLICT,
    422: Cause.VALIDATION,
    429: Cause.RATE_LIMITED,
}
NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said: a status code and its JSON value."""

    code: int
    body: Any


class Outside:
    """One connection for one request, within what is left of the attempt's time."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._line = http.client.HTTPConnection(
            addresses.HOST, addresses.known().http, timeout=CONNECT_S
        )

    def __enter__(self) -> Self:
        """Connect. Raises `NotBegun` where that fails: not one byte of a request was sent."""
        try:
            self._line.connect()
        except OSError as error:
            raise NotBegun(
                f"The sandbox could not be reached: {error}. Nothing was sent. Start it with "
                "`manage.py sandbox`.",
                cause=Cause.CONNECT_FAILED,
            ) from error
        linger_not(self._line.sock)
        return self

    def send(self, method: str, path: str, fields: dict[str, Any] | None = None) -> Answer:
        """Send the request and return the answer, whatever its code.

        Raises `ConnectionError` or `TimeoutError` where no full answer came.
        """
        self._line.sock.settimeout(max(0.1, self._context.remaining_s()))
        body = None if fields is None else json.dumps(fields)
        try:
            self._line.request(method, path, body, {"Content-Type": "application/json"})
            response = self._line.getresponse()
            return Answer(response.status, json.loads(response.read(ANSWER_BYTES_MAX) or b"null"))
        except (http.client.HTTPException, ValueError) as error:
            raise ConnectionResetError(f"The answer broke off: {error!r}") from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.close()


def expected(answer: Answer, code: int) -> Any:
    """Return the value of an answer that has `code`; raise what any other one proves."""
    if answer.code == code:
        return answer.body
    said = f"The sandbox answered {answer.code}: {json.dumps(answer.body)[:200]}"
    if answer.code in REFUSALS:
        raise Refused(REFUSALS[answer.code], f"{said}. It refused, so nothing was done.")
    raise Unproven(Cause.SERVER_ERROR, f"{said}. Whether it acted before is unknown.")


def linger_not(line: socket.socket) -> None:
    """Send nothing more once this side is dead: the kernel resets instead of draining."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
