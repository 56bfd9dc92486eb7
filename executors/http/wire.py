"""How bytes leave: a network backend that connects to checked addresses and counts.

The HTTP library speaks the protocol; this file owns the sockets. It connects to the
addresses that the outbound rules checked and to no others, tells the attempt before the
first byte of a request is handed over, counts what was handed over, and bounds every wait
by what is left of the attempt. It never resolves a name and never opens a second connection.
"""

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore2
import httpx2

from executors.http.addresses import Resolver, system_resolver
from executors.network import Fault

CONNECT_S = 3.0
"""Name, TCP and TLS together, per connection (security, 3.5)."""

RESET_ON_CLOSE = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
"""A killed sender takes its unsent bytes with it (reliability, K7)."""

LINGER_OFF = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))

SocketOption = tuple[int, int, bytes]
Connector = Callable[[str, int, float, Sequence[SocketOption]], socket.socket]
"""From checked address, port, seconds and options to a connected socket; raises OSError."""


class Unanswered(Exception):
    """The exchange ended without an answer. `executors.network` says what its `fault` proves."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def tcp_connect(
    address: str, port: int, seconds: float, options: Sequence[SocketOption]
) -> socket.socket:
    """Open one TCP connection to a numeric address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        for option in options:
            opened.setsockopt(*option)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.settimeout(seconds)
        opened.connect((address, port))
    except BaseException:
        opened.close()
        raise
    return opened


@cache
def public_tls() -> ssl.SSLContext:
    """Certificates as the system trusts them; nothing is taken from the environment."""
    return httpx2.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """How the outside is reached; the parts that an installation or a test may set."""

    resolve: Resolver = system_resolver
    connect: Connector = tcp_connect
    tls: Callable[[], ssl.SSLContext] = public_tls


@dataclass(slots=True, kw_only=True)
class Traffic:
    """What one attempt may still spend, and what has left our hands in it.

    `before_first_byte` is called once, after a connection stands and before the first byte
    of a request is handed over; what it raises stops the attempt with nothing sent.
    """

    ends_at: float
    before_first_byte: Callable[[], None]
    handed_over: int = 0
    announced: bool = False

    @classmethod
    def within(cls, seconds: float, before: Callable[[], None] = lambda: None) -> "Traffic":
        """Traffic that ends in `seconds` from now; `before` is its `before_first_byte`."""
        return cls(ends_at=time.monotonic() + seconds, before_first_byte=before)

    def left_s(self) -> float:
        """Seconds left, above 0; raises Unanswered when they are spent."""
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise Unanswered(Fault.OUT_OF_TIME, "The time for this attempt is spent.")
        return left

    def announce(self) -> None:
        if not self.announced:
            self.before_first_byte()
            self.announced = True


class CountedStream(httpcore2.NetworkStream):
    """One connection of an attempt. `at_end` once the peer has closed its side in order."""

    def __init__(self, connected: socket.socket, traffic: Traffic, connect_by: float) -> None:
        self._socket = connected
        self._traffic = traffic
        self._connect_by = connect_by
        self.at_end = False

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> "CountedStream":
        try:
            self._socket.settimeout(_left_until(self._connect_by))
            # A ragged end would otherwise look like the end of an answer without a length.
            ssl_context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
            self._socket = ssl_context.wrap_socket(
                self._socket, server_hostname=server_hostname, suppress_ragged_eofs=False
            )
        except TimeoutError as slow:
            self.close()
            raise Unanswered(Fault.CONNECT_TIMEOUT, "TLS was not agreed in time.") from slow
        except OSError as refused:
            self.close()
            raise Unanswered(Fault.TLS_FAILED, f"TLS failed: {_reason(refused)}.") from refused
        return self

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        self._traffic.announce()
        view = memoryview(buffer)
        while view:
            view = view[self._send(view) :]

    def _send(self, view: memoryview) -> int:
        self._socket.settimeout(self._traffic.left_s())
        # TLS may have flushed part of a record before it raises, so there the bytes count
        # as handed over when they are offered; plain TCP tells how many it took.
        if isinstance(self._socket, ssl.SSLSocket):
            self._traffic.handed_over += len(view)
        try:
            sent = self._socket.send(view)
        except TimeoutError as slow:
            raise Unanswered(Fault.OUT_OF_TIME, "The peer stopped taking the request.") from slow
        except OSError as gone:
            self._raise_write_failed(gone)
        if not isinstance(self._socket, ssl.SSLSocket):
            self._traffic.handed_over += sent
        return sent

    def _raise_write_failed(self, gone: OSError) -> None:
        if self._traffic.handed_over:
            # The library then still reads: a peer may refuse a request before its end.
            raise httpcore2.WriteError(str(gone)) from gone
        raise Unanswered(Fault.WRITE_FAILED, f"Nothing was sent: {_reason(gone)}.") from gone

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._socket.settimeout(self._traffic.left_s())
        try:
            received = self._socket.recv(max_bytes)
        except TimeoutError as slow:
            raise Unanswered(Fault.OUT_OF_TIME, "No full answer came in time.") from slow
        except OSError as gone:
            raise Unanswered(
                Fault.CONNECTION_RESET, f"The connection broke: {_reason(gone)}."
            ) from gone
        self.at_end = not received
        return received

    def end_in_order(self) -> None:
        self._socket.setsockopt(*LINGER_OFF)

    def close(self) -> None:
        self._socket.close()

    def get_extra_info(self, info: str) -> Any:
        return self._socket if info == "socket" else None


class CheckedAddresses(httpcore2.NetworkBackend):
    """A backend for one connection, to the first of `addresses` that answers."""

    def __init__(
        self, addresses: Sequence[str], connect: Connector, traffic: Traffic, connect_by: float
    ) -> None:
        self._addresses = addresses
        self._connect = connect
        self._traffic = traffic
        self._connect_by = connect_by
        self.stream: CountedStream | None = None

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> CountedStream:
        options = list(socket_options or ())
        failure = Unanswered(Fault.UNREACHABLE, "There is no address to connect to.")
        for position, address in enumerate(self._addresses):
            try:
                share = _left_until(self._connect_by) / (len(self._addresses) - position)
                connected = self._connect(address, port, share, options)
            except OSError as refused:
                failure = _connect_failure(refused)
            else:
                self.stream = CountedStream(connected, self._traffic, self._connect_by)
                return self.stream
        raise failure

    def end_in_order(self) -> None:
        """After a full answer nothing is left to take back, so close without a reset."""
        if self.stream is not None:
            self.stream.end_in_order()


def _connect_failure(refused: OSError) -> Unanswered:
    if isinstance(refused, TimeoutError):
        return Unanswered(Fault.CONNECT_TIMEOUT, "No connection stood in time. Nothing was sent.")
    refusal = isinstance(refused, ConnectionRefusedError)
    fault = Fault.CONNECTION_REFUSED if refusal else Fault.UNREACHABLE
    return Unanswered(fault, f"No connection: {_reason(refused)}. Nothing was sent.")


def _left_until(instant: float) -> float:
    left = instant - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time to connect is spent")
    return left


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).rstrip(".")
