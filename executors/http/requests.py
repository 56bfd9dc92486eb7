"""From a tool's configuration and one call to the request that is sent.

Building a request touches nothing outside: whatever is wrong with arguments, secrets or
addresses comes out here, before any boundary. The same call gives the same bytes every time,
but for the span of its attempt.
"""

import json
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from executors.contract import JSON, Assignment
from executors.http.client import Request
from executors.http.config import HANDLE_IS_URL, Body, HttpTool, Secret
from executors.http.secrets import Revealed
from executors.http.targets import Target, read_url
from executors.http.templates import (
    ABSENT,
    Unfillable,
    fill_json,
    fill_text,
    fill_url,
)
from ledger.vocabulary import RecoveryClass

USER_AGENT = "Clearhouse"
_KEPT = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "%")


def filling_of(assignment: Assignment) -> dict[str, JSON]:
    """The values that templates may name; those of the ledger win over arguments."""
    own = {
        "call_id": str(assignment.call_id),
        "idempotency_key": assignment.idempotency_key,
        "marker": assignment.marker,
    }
    handle = {"handle": assignment.handle.value} if assignment.handle else {}
    return {**assignment.arguments, **own, **handle}


def call_request(tool: HttpTool, assignment: Assignment, revealed: Revealed) -> Request:
    """The request that does the tool's work; an effect carries key and marker (security, 3.6).

    Raises Unfillable, UnfitUrl or SecretMissing: nothing was sent.
    """
    filling = filling_of(assignment)
    body, media_type = _body(tool.body, assignment.arguments, filling)
    headers = _headers(tool, filling, revealed, media_type if body else "")
    marks = () if assignment.recovery_class == RecoveryClass.READ_ONLY else _marks(assignment)
    headers += _trace(assignment)
    target = read_url(_with_query(fill_url(tool.url, filling), tool.query, filling, revealed))
    return Request(method=tool.method, target=target, headers=(*headers, *marks), body=body)


def _marks(assignment: Assignment) -> tuple[tuple[str, str], ...]:
    return (
        ("Idempotency-Key", header_text(assignment.idempotency_key)),
        ("Clearhouse-Call", header_text(assignment.marker)),
    )


def _trace(assignment: Assignment) -> list[tuple[str, str]]:
    return [("traceparent", assignment.traceparent)] if assignment.traceparent else []


def asking_request(
    tool: HttpTool, url: str, method: str, assignment: Assignment, revealed: Revealed
) -> Request:
    """A request about earlier work (poll, cancel, probe): the tool's headers, no body."""
    filling = filling_of(assignment)
    headers = _headers(tool, filling, revealed, media_type="") + _trace(assignment)
    kept = tuple(pair for pair in headers if pair[0].lower() != "content-type")
    return Request(method=method, target=_target(url, filling), headers=kept)


def header_text(value: str) -> str:
    """`value` as visible ASCII: anything else, and `%`, percent-encoded, so none coincide."""
    return quote(value, safe=_KEPT)


def _target(url: str, filling: Mapping[str, JSON]) -> Target:
    return read_url(fill_text(url, filling) if url == HANDLE_IS_URL else fill_url(url, filling))


def _headers(
    tool: HttpTool, filling: Mapping[str, JSON], revealed: Revealed, media_type: str
) -> list[tuple[str, str]]:
    headers = {name.lower(): (name, value) for name, value in tool.headers.items()}
    headers.setdefault("user-agent", ("User-Agent", USER_AGENT))
    headers.setdefault("accept", ("Accept", "application/json, */*;q=0.5"))
    if media_type:
        headers.setdefault("content-type", ("Content-Type", media_type))
    return [(name, _value(value, filling, revealed)) for name, value in headers.values()]


def _value(value: str | Secret, filling: Mapping[str, JSON], revealed: Revealed) -> str:
    if isinstance(value, Secret):
        return value.prefix + revealed.reveal(value.name)
    return fill_text(value, filling)


def _with_query(
    url: str,
    query: Mapping[str, str | Secret],
    filling: Mapping[str, JSON],
    revealed: Revealed,
) -> str:
    pairs = [
        (name, revealed.reveal(value.name) if isinstance(value, Secret) else _plain(name, filled))
        for name, value in query.items()
        if (filled := None if isinstance(value, Secret) else fill_json(value, filling))
        is not ABSENT
    ]
    if not pairs:
        return url
    return url + ("&" if "?" in url else "?") + urlencode(pairs, quote_via=quote)


def _plain(name: str, value: JSON) -> str:
    if value is None or isinstance(value, (dict, list)):
        raise Unfillable(
            f"The query parameter {name!r} is given a list, an object or null. Nothing was "
            "sent. Call again with a text, number or truth value."
        )
    return value if isinstance(value, str) else json.dumps(value)


def _body(
    body: str | Body, arguments: Mapping[str, JSON], filling: Mapping[str, JSON]
) -> tuple[bytes, str]:
    if body == "none":
        return b"", ""
    if isinstance(body, Body) and body.form is not None:
        fields = {
            name: _plain(name, value) for name, value in fill_json(body.form, filling).items()
        }
        return urlencode(fields).encode(), "application/x-www-form-urlencoded"
    value = fill_json(body.template, filling) if isinstance(body, Body) else dict(arguments)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode(), "application/json"
