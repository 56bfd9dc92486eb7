"""Spends from the address's quota before a body is read, and tells each answer what is left."""

import asyncio
from http import HTTPStatus
from typing import Any

from config.bodies import Application, Receive, Scope, Send, refuse
from ledger.api.quotas import QuotaSpent, Spending, kind_of

PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by whoever would restart the web if it did not answer."""
REFUSED_AFTER_S = 0.5
"""Who is told to wait for a second and asks again at once would keep the web busy with that."""


def limited(application: Application) -> Application:
    """Wrap an application so that no address asks more than its quota gives (console, 22.8)."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await application(scope, receive, send)
            return
        spending = scope["spending"] = _spending_of(scope)

        async def telling(message: Any) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == HTTPStatus.TOO_MANY_REQUESTS:
                    await asyncio.sleep(REFUSED_AFTER_S)
                message["headers"] = [*message.get("headers", ()), *spending.headers]
            await send(message)

        try:
            spending.arrive()
        except QuotaSpent as refusal:
            await refuse(telling, scope, refusal)
            return
        await application(scope, receive, telling)

    return run


def _spending_of(scope: Scope) -> Spending:
    has_key = any(name == b"authorization" for name, _ in scope["headers"])
    client = scope.get("client")
    return Spending(
        kind_of(scope["method"], scope["path"], has_key=has_key), client[0] if client else ""
    )
