"""An agent as its author would write one: HTTP and JSON, nothing of the product imported."""

import http.client
import json
from typing import Any

LOOPBACK = "127.0.0.1"
LIMIT_S = 40.0


class Refused(Exception):
    """The API answered with a problem: the HTTP code, then the problem document."""

    @property
    def code(self) -> int:
        return int(self.args[0])

    @property
    def problem(self) -> dict[str, Any]:
        return dict(self.args[1] or {})


class Agent:
    """Speaks to one server with one key. Each request has a connection of its own."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the HTTP code and the JSON value. Raises OSError where no answer came."""
        line = http.client.HTTPConnection(LOOPBACK, self._port, timeout=LIMIT_S)
        try:
            known = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            line.request(method, path, body if body is None else json.dumps(body), known | headers)
            response = line.getresponse()
            return response.status, json.loads(response.read() or b"null")
        except (http.client.HTTPException, ValueError) as error:
            raise ConnectionError(repr(error)) from error
        finally:
            line.close()

    def vanish(self, path: str, body: Any, **headers: str) -> None:
        """Post and hang up without waiting for the answer. Raises OSError as `ask` does."""
        line = http.client.HTTPConnection(LOOPBACK, self._port, timeout=LIMIT_S)
        try:
            known = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            line.request("POST", path, json.dumps(body), known | headers)
        except http.client.HTTPException as error:
            raise ConnectionError(repr(error)) from error
        finally:
            line.close()

    def get(self, path: str) -> Any:
        """Return what is there. Raises Refused for a problem, OSError for a server in trouble."""
        return _told(*self.ask("GET", path))

    def post(self, path: str, body: Any, **headers: str) -> Any:
        """Post and return the answer. Raises as `get` does."""
        return _told(*self.ask("POST", path, body, **headers))

    def submit(self, tool: str, arguments: dict[str, Any], **more: Any) -> str:
        """Record a call and return its id."""
        said = self.post("/api/v1/calls", {"tool": tool, "arguments": arguments, **more})
        return str(said["id"])

    def call(self, call_id: str, wait_s: float = 0) -> dict[str, Any]:
        """Return a call as it stands, or once it is settled within `wait_s`."""
        found: dict[str, Any] = self.get(f"/api/v1/calls/{call_id}?wait={wait_s}")
        return found

    def events(self, call_id: str) -> list[dict[str, Any]]:
        """Return a call's events in order."""
        return list(self.get(f"/api/v1/calls/{call_id}/events")["items"])

    def attempts(self, call_id: str) -> list[dict[str, Any]]:
        """Return a call's attempts in order."""
        return list(self.get(f"/api/v1/calls/{call_id}/attempts")["items"])

    def verdict(self, call_id: str) -> dict[str, Any]:
        """Return the three answers about a call."""
        found: dict[str, Any] = self.get(f"/api/v1/calls/{call_id}/verdict")
        return found

    def phase(self, call_id: str) -> str:
        """Return where the live attempt of a call says that it stands; "" before it said so."""
        tries = [each for each in self.attempts(call_id) if each["ended_at"] is None]
        cursor = tries[-1]["cursor"] if tries else None
        return str(cursor["phase"]) if isinstance(cursor, dict) and "phase" in cursor else ""

    def holder(self, call_id: str) -> int:
        """Return the pid of the worker that holds the live attempt of a call."""
        name = str(self.attempts(call_id)[-1]["worker"])
        return int(name.rpartition("-")[2])


def _told(code: int, found: Any) -> Any:
    if code >= 500:
        raise ConnectionError(f"The server answered {code}: ask again.")
    if code >= 400:
        raise Refused(code, found)
    return found
