"""One request, one connection, one answer.

The client checks the address, connects to it, and hands the request over under the bounds of
the attempt. It repeats nothing by itself, keeps no connection, reads no proxy, `.netrc` or
cookie, and follows a redirect only for a read. It raises `Unanswered` where no answer came;
whatever `before_first_byte` raises passes through untouched.
"""

import queue
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import httpcore2

from executors.http.addresses import (
    NotAllowed,
    NotResolved,
    OutboundRules,
    Resolver,
    checked_addresses,
)
from executors.http.bodies import Body
from executors.http.targets import Target, UnfitUrl, read_redirect
from executors.http.wire import (
    CONNECT_S,
    RESET_ON_CLOSE,
    CheckedAddresses,
    CountedStream,
    Network,
    Traffic,
    Unanswered,
)
from executors.network import Fault

MAX_REDIRECTS = 3
FOLLOWED = frozenset({301, 302, 303, 307, 308})
KEEPS_METHOD = frozenset({307, 308})
HARMLESS_ELSEWHERE = frozenset({"accept", "accept-language", "user-agent"})
"""The headers that go along when a redirect leads to another origin."""

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent. `headers` are name and value; Host and lengths are added here."""

    method: str
    target: Target
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. `headers` have lower-case names; `cut` is "" when the body is whole."""

    status: int
    headers: dict[str, str]
    body: bytes
    cut: str = ""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def exchange(
    request: Request,
    *,
    rules: OutboundRules,
    network: Network,
    traffic: Traffic,
    reset_on_close: bool = False,
) -> Answer:
    """Send `request` once on a connection of its own and return the answer.

    `reset_on_close` is for effects: bytes queued by a killed sender are then dropped.
    Raises Unanswered; `traffic.handed_over` tells whether a byte had left by then.
    """
    wire_request = _wire_request(request)
    connect_by = time.monotonic() + min(CONNECT_S, traffic.left_s())
    addresses = _checked(request.target, rules, network.resolve, connect_by)
    backend = CheckedAddresses(addresses, network.connect, traffic, connect_by)
    connection = httpcore2.HTTPConnection(
        origin=wire_request.url.origin,
        ssl_context=network.tls() if request.target.scheme == "https" else None,
        network_backend=backend,
        socket_options=[RESET_ON_CLOSE] if reset_on_close else None,
    )
    try:
        return _answer(connection, wire_request, backend)
    finally:
        connection.close()


def follow(request: Request, *, rules: OutboundRules, network: Network, traffic: Traffic) -> Answer:
    """Send a read, following at most three redirects, each one checked anew."""
    for _ in range(MAX_REDIRECTS + 1):
        answer = exchange(request, rules=rules, network=network, traffic=traffic)
        onward = _redirected(request, answer)
        if onward is None:
            return answer
        request = onward
    raise Unanswered(
        Fault.TOO_MANY_REDIRECTS, f"More than {MAX_REDIRECTS} redirects. Correct the tool's URL."
    )


def _answer(
    connection: httpcore2.HTTPConnection, request: httpcore2.Request, backend: CheckedAddresses
) -> Answer:
    try:
        response = connection.handle_request(request)
    except httpcore2.LocalProtocolError as unfit:
        raise Unanswered(Fault.UNFIT_REQUEST, "The request is not valid HTTP.") from unfit
    except httpcore2.RemoteProtocolError as broken:
        raise _broken_off(backend.stream) from broken
    headers = _read_headers(response.headers)
    body = Body(headers.get("content-encoding", ""))
    cut = _read_body(response, body, backend)
    return Answer(status=response.status, headers=headers, body=body.content, cut=cut)


def _read_body(response: httpcore2.Response, body: Body, backend: CheckedAddresses) -> str:
    """Read until the end, the caps or the break; return why the body is cut, or ""."""
    try:
        for chunk in response.iter_stream():
            if not body.feed(chunk):
                break
        else:
            body.finish()
            backend.end_in_order()
    except Unanswered as broken:
        return str(broken)
    except httpcore2.RemoteProtocolError:
        return "The connection was closed before the end of the answer."
    finally:
        response.close()
    return body.cut


def _broken_off(stream: CountedStream | None) -> Unanswered:
    if stream is not None and stream.at_end:
        return Unanswered(Fault.CONNECTION_CLOSED, "The peer closed without an answer.")
    return Unanswered(Fault.MALFORMED_ANSWER, "The peer's answer is not HTTP.")


def _checked(
    target: Target, rules: OutboundRules, resolve: Resolver, connect_by: float
) -> list[str]:
    def within(host: str, port: int) -> Sequence[str]:
        return _resolve_within(resolve, host, port, connect_by - time.monotonic())

    try:
        return checked_addresses(target, rules, within)
    except NotAllowed as refused:
        raise Unanswered(Fault.NOT_ALLOWED, str(refused)) from refused
    except NotResolved as silent:
        raise Unanswered(Fault.NAME_NOT_RESOLVED, f"{silent} Nothing was sent.") from silent


def _resolve_within(resolve: Resolver, host: str, port: int, seconds: float) -> Sequence[str]:
    # The system's resolver cannot be given a limit, so it is waited for from outside; a
    # late answer falls into a queue that nobody reads.
    answers: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolve(host, port))
        except Exception as failure:
            answers.put(failure)

    threading.Thread(target=ask, daemon=True, name="resolve").start()
    try:
        answer = answers.get(timeout=max(seconds, 0.0))
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:.1f} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _wire_request(request: Request) -> httpcore2.Request:
    target = request.target
    headers = [("Host", target.authority), *request.headers, ("Connection", "close")]
    headers.append(("Accept-Encoding", "gzip"))
    if request.body or request.method not in ("GET", "HEAD", "DELETE"):
        headers.append(("Content-Length", str(len(request.body))))
    for name, value in headers:
        _check_header(name, value)
    url = httpcore2.URL(
        scheme=target.scheme.encode(),
        host=target.host.encode(),
        port=target.port,
        target=target.path.encode(),
    )
    return httpcore2.Request(
        request.method.encode(),
        url,
        headers=[(name.encode(), value.encode()) for name, value in headers],
        content=request.body,
    )


def _check_header(name: str, value: str) -> None:
    if _TOKEN.fullmatch(name) is None or _FIELD_VALUE.fullmatch(value) is None:
        raise Unanswered(
            Fault.UNFIT_REQUEST,
            f"The header {name[:60]!r} has a character that may not go into a header (a line "
            "break, NUL or non-ASCII). Nothing was sent. Correct the argument or the secret.",
        )


def _read_headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _redirected(request: Request, answer: Answer) -> Request | None:
    """The request that a redirect asks for, or None if the answer stands as it is."""
    if answer.status not in FOLLOWED or "location" not in answer.headers:
        return None
    try:
        target = read_redirect(request.target, answer.headers["location"])
    except UnfitUrl as unfit:
        raise Unanswered(Fault.NOT_ALLOWED, str(unfit)) from unfit
    if (request.target.scheme, target.scheme) == ("https", "http"):
        raise Unanswered(Fault.NOT_ALLOWED, "The redirect leads from https to http.")
    onward = replace(request, target=target)
    if answer.status not in KEEPS_METHOD and request.method != "HEAD":
        onward = replace(onward, method="GET", body=b"", headers=_without_body(request.headers))
    return onward if target.origin == request.target.origin else _for_another_origin(onward)


def _for_another_origin(request: Request) -> Request:
    if request.body:
        raise Unanswered(Fault.NOT_ALLOWED, "The redirect would carry the body to another host.")
    kept = tuple(pair for pair in request.headers if pair[0].lower() in HARMLESS_ELSEWHERE)
    return replace(request, headers=kept)


def _without_body(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in headers if pair[0].lower() != "content-type")
