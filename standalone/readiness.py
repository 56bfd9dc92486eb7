"""Asking the web server, over HTTP as anybody would, whether it answers and is ready."""

import http.client

from standalone.ports import LOOPBACK

LIMIT_S = 5


def answer(port: int, path: str) -> tuple[int, str]:
    """The HTTP code of `path` and the beginning of its body; (0, reason) without an answer."""
    link = http.client.HTTPConnection(LOOPBACK, port, timeout=LIMIT_S)
    try:
        link.request("GET", path)
        response = link.getresponse()
        return response.status, response.read(2_000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
    finally:
        link.close()


def alive(port: int) -> bool:
    """Whether the web server answers at all."""
    return answer(port, "/healthz")[0] == 200


def ready(port: int) -> bool:
    """Whether it says that everything it needs is there."""
    return answer(port, "/readyz")[0] == 200
