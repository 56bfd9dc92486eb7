"""The SMTP server of the sandbox, which misbehaves on request.

The local part of a recipient's address says how (a drill writes to `drop@...`):

| Local part | What the server does |
|---|---|
| `drop` | keeps the message, then resets the connection before its 250: it happened |
| `drop-early` | resets the connection after the message was sent, keeping nothing: it did not |
| `slow-N` | keeps the message, then waits N seconds (at most 60) before its 250 |
| `refuse-NNN` | answers the recipient with NNN, a code from 400 to 599 |
| `refuse-after-NNN` | takes the whole message, then answers NNN and keeps nothing |

Anybody else simply gets their mail. A message is on disk before its 250 is sent.
"""

import asyncio
import re
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from sandbox.addresses import HOST
from sandbox.mailbox import Mailbox

SIZE_BYTES_MAX = 10 * 1024 * 1024
WAIT_S_MAX = 60
REFUSED = re.compile(r"refuse-([45]\d\d)@")
REFUSED_AFTER = re.compile(r"refuse-after-([45]\d\d)@")
SLOW = re.compile(r"slow-(\d{1,2})@")


class Deliveries:
    """What aiosmtpd asks at each step of a dialogue; the names of its methods are given there."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        refused = REFUSED.match(address)
        if refused:
            return f"{refused[1]} the sandbox refuses this recipient, as its address asks"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        addresses = envelope.rcpt_tos
        refused = _first(REFUSED_AFTER, addresses)
        if refused:
            return f"{refused[1]} the sandbox refuses this message, as its address asks"
        if any(address.startswith("drop-early@") for address in addresses):
            return _reset(server)
        kept = self._mailbox.accept(envelope.original_content or b"")
        if any(address.startswith("drop@") for address in addresses):
            return _reset(server)
        slow = _first(SLOW, addresses)
        if slow:
            await asyncio.sleep(min(int(slow[1]), WAIT_S_MAX))
        return f"250 2.0.0 kept as {kept}"


async def listen(mailbox: Mailbox, port: int) -> asyncio.Server:
    """Serve SMTP on loopback; port 0 takes a free one."""
    loop = asyncio.get_running_loop()
    deliveries = Deliveries(mailbox)

    def dialogue() -> SMTP:
        return SMTP(deliveries, hostname="sandbox.invalid", data_size_limit=SIZE_BYTES_MAX)

    return await loop.create_server(dialogue, HOST, port)


def _first(pattern: re.Pattern[str], addresses: list[str]) -> re.Match[str] | None:
    return next(filter(None, map(pattern.match, addresses)), None)


def _reset(server: Any) -> str:
    """Reset the connection at once: no reply leaves, whatever is returned here."""
    server.transport.abort()
    return "421 gone"
