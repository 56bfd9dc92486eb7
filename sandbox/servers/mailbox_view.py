"""The mailbox over HTTP, which is what the probe of `sandbox.send_mail` asks.

`GET /mailbox?marker=...` or `?message_id=...`: a list of messages, oldest first.
"""

from sandbox.mailbox import Mailbox, shown
from sandbox.servers.http import Answer, Request, Route


def routes(mailbox: Mailbox) -> list[Route]:
    """Return the address of the mailbox."""

    async def listed(request: Request) -> Answer:
        found = mailbox.find(
            marker=request.query.get("marker", ""), message_id=request.query.get("message_id", "")
        )
        return Answer(200, shown(found))

    return [Route("GET", "/mailbox", listed)]
