"""Payments that can succeed after their socket died (R162).

`POST /payments {marker, payee, amount_cents, currency, fault}` makes a payment each time it
is asked: there is no key, which is why the tool is a `side_effect`. `fault` is one of:

| Fault | What happens |
|---|---|
| `none` | paid, 201 |
| `drop_after` | paid, then the connection is reset: it happened |
| `drop_before` | the connection is reset, nothing is paid |
| `error_after` | paid, then answered 500 |
| `declined` | 422, nothing is paid |

`GET /payments?marker=...` lists the payments with that marker, oldest first.
"""

import json
import time
import uuid
from pathlib import Path
from typing import Any

from sandbox import durable
from sandbox.marks import digest
from sandbox.servers.http import RESET, Answer, Request, Route

FIELDS = ("marker", "payee", "amount_cents", "currency")
BROKEN_AFTER = {"drop_after": RESET, "error_after": Answer(500, {"error": "server_error"})}
BROKEN_BEFORE = {"drop_before": RESET, "declined": Answer(422, {"error": "declined"})}


def routes(folder: Path) -> list[Route]:
    """Return the addresses of payments, kept as one file each in `folder`."""

    async def listed(request: Request) -> Answer:
        return Answer(200, find(folder, request.query.get("marker", "")))

    async def paid(request: Request) -> Any:
        fault = request.fields.get("fault", "none")
        if fault in BROKEN_BEFORE:
            return BROKEN_BEFORE[fault]
        payment = pay(folder, {name: request.fields.get(name, "") for name in FIELDS})
        return BROKEN_AFTER.get(fault) or Answer(201, payment)

    return [Route("GET", "/payments", listed), Route("POST", "/payments", paid)]


def pay(folder: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Make a payment: return it once it is on disk."""
    payment = {"id": f"pay-{uuid.uuid4().hex[:12]}", **fields, "paid_at": time.time()}
    name = f"{time.time_ns()}.{digest(str(fields['marker']))}.{payment['id']}.json"
    durable.write(folder / name, json.dumps(payment).encode())
    return payment


def find(folder: Path, marker: str) -> list[dict[str, Any]]:
    """Return the payments with this marker, oldest first. The file name is the index."""
    return [json.loads(file.read_bytes()) for file in sorted(folder.glob(f"*.{digest(marker)}.*"))]
