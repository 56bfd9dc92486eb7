"""A pager: what notifications are sent to where nobody has one.

`POST /pager` takes any body and answers 202; `GET /pager` lists the last hundred, oldest first.
`POST /pager/gone` answers 410, as a receiver does that wants no more.
"""

from collections import deque
from typing import Any

from sandbox.servers.http import Answer, Request, Route

KEPT = 100


def routes() -> list[Route]:
    """Return the addresses of the pager, which keeps what it took in memory."""
    taken: deque[Any] = deque(maxlen=KEPT)

    async def paged(request: Request) -> Answer:
        taken.append(request.fields)
        return Answer(202)

    async def listed(_: Request) -> Answer:
        return Answer(200, list(taken))

    async def gone(_: Request) -> Answer:
        return Answer(410, {"error": "gone"})

    return [
        Route("POST", "/pager", paged),
        Route("GET", "/pager", listed),
        Route("POST", "/pager/gone", gone),
    ]
