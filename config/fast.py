"""The two hot routes, submit and fetch, answered in front of Django's handler.

The same code as the ninja routes stands behind them (`ledger/api/intake.py` and `answers.py`):
the same reading, the same refusals, the same group commit; only the framework around it is left
out. Whatever is not exactly one of the two, with an agent's key, goes on to Django.
"""

import asyncio
import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

import orjson
from django.db import InterfaceError, OperationalError, close_old_connections
from django.http.request import split_domain_port, validate_host

from config import problems
from config.bodies import Application, Receive, Scope, Send
from config.headers import SAME_ON_ALL
from config.middleware import request_id_from
from config.settings import ALLOWED_HOSTS, PRODUCTION
from ledger import foreign, keys
from ledger.api import answers, intake
from ledger.api.answers import Answer
from ledger.api.auth import bearer_of, idempotency_key_of, need_scope, principal_of
from ledger.api.epochs import EPOCH, epoch_of
from ledger.errors import LedgerError, NotFound
from ledger.keys import Principal
from ledger.strictjson import NotStrict

SUBMIT = "/api/v1/calls"
DETAIL = f"{SUBMIT}/"
LONGEST_ID = 64

log = logging.getLogger(__name__)


def fast(application: Application) -> Application:
    """Answer the hot routes here, everything else by `application`."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_hot(scope):
            await application(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if not _is_ordinary(scope, headers):
            await application(scope, receive, send)
            return
        request_id = request_id_from(headers.get("x-request-id"))
        answer = await _answered(scope, receive, headers, request_id)
        await _send(send, answer, request_id)

    return run


def _is_hot(scope: Scope) -> bool:
    path, method = scope["path"], scope["method"]
    if method == "POST":
        return bool(path == SUBMIT)
    rest = path[len(DETAIL) :]
    return bool(
        method == "GET"
        and path.startswith(DETAIL)
        and "/" not in rest
        and 0 < len(rest) <= LONGEST_ID
    )


def _is_ordinary(scope: Scope, headers: Mapping[str, str]) -> bool:
    """No person's login, no foreign host, no plain HTTP in production: those are Django's."""
    if "authorization" not in headers and scope["method"] == "GET":
        return False
    if not _is_our_host(headers.get("host", "")):
        return False
    return not PRODUCTION or headers.get("x-forwarded-proto") == "https"


@lru_cache(maxsize=64)
def _is_our_host(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, ALLOWED_HOSTS)


async def _answered(
    scope: Scope, receive: Receive, headers: Mapping[str, str], request_id: str
) -> Answer:
    try:
        return await _serve(scope, receive, headers)
    except LedgerError as refusal:
        status, code, detail, more, extra = problems.of_refusal(refusal)
    except NotStrict as refusal:
        status, code, detail, more, extra = problems.of_not_strict(refusal)
    except (OperationalError, InterfaceError) as error:
        log.warning("api.database_away error=%s", type(error).__name__)
        more = {"Retry-After": str(problems.AWAY_RETRY_S)}
        status, code, detail, extra = 503, "database_away", problems.AWAY, {}
    except Exception:
        log.exception("api.failed request=%s", request_id)
        status, code, detail, more, extra = 500, "internal", problems.INTERNAL, {}, {}
    body = problems.document(
        status=status, code=code, detail=detail, instance=scope["path"], request_id=request_id,
        **extra,
    )  # fmt: skip
    return Answer(status, body, {"Content-Type": "application/problem+json"} | more)


async def _serve(scope: Scope, receive: Receive, headers: Mapping[str, str]) -> Answer:
    query = scope.get("query_string", b"").decode("latin-1")
    principal = await _principal(scope, headers, query)
    scope["spending"].as_caller(principal.key_id, principal.workspace_id)
    try:
        return await _serve_to(principal, scope, receive, headers, query)
    except NotFound as refusal:
        foreign.note(refusal, principal)
        raise


async def _serve_to(
    principal: Principal, scope: Scope, receive: Receive, headers: Mapping[str, str], query: str
) -> Answer:
    wait_s = intake.wait_s_of(next(iter(parse_qs(query).get("wait", ())), None) if query else None)
    if scope["method"] == "GET":
        need_scope(principal, "calls:read")
        return await answers.fetched_call(
            principal,
            scope["path"][len(DETAIL) :],
            wait_s=wait_s,
            if_none_match=headers.get("if-none-match", ""),
        )
    need_scope(principal, "calls:submit")
    message = await receive()
    submits, is_batch = intake.read_submits(
        message.get("body", b""),
        headers.get("content-type", ""),
        headers.get("content-encoding", ""),
        principal,
        idempotency_key_of(headers.get("idempotency-key")),
        epoch_of(headers.get(EPOCH.lower())),
        _sent(scope, b"traceparent"),
    )
    return await answers.submitted(submits, is_batch=is_batch, principal=principal, wait_s=wait_s)


async def _principal(scope: Scope, headers: Mapping[str, str], query: str) -> Principal:
    key = bearer_of(_sent(scope, b"authorization"), query, headers.get("cookie", ""))
    known = keys.remembered(key)
    if known is not None:
        return known
    return await asyncio.to_thread(_look_up, key, scope["spending"].network)


def _sent(scope: Scope, wanted: bytes) -> str:
    """A header that may stand once; sent more often, all of it, as Django gives it."""
    sent = [value for name, value in scope["headers"] if name == wanted]
    return ",".join(value.decode("latin-1") for value in sent)


def _look_up(key: str, network: str) -> Principal:
    try:
        return principal_of(key, network)
    finally:
        close_old_connections()


async def _send(send: Send, answer: Answer, request_id: str) -> None:
    body = b"" if answer.body is None else orjson.dumps(answer.body, default=str)
    headers: list[Any] = [
        *SAME_ON_ALL,
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request_id.encode()),
    ]
    named = {"Content-Type": "application/json"} | dict(answer.headers)
    headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
