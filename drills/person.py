"""A person at the console's door: signs in by the login page, decides through the API."""

import http.client
import json
import threading
import time
from typing import Any, Self
from urllib.parse import urlencode

from drills.agent import LIMIT_S, LOOPBACK, Refused

LOGIN = "/login"
FRESH_S = 300.0
"""A login is renewed after this time: deciding over a side effect takes a fresh one."""


class Person:
    """One login with its cookies, shared by threads. Each request has a connection of its own."""

    def __init__(self, port: int, name: str, password: str) -> None:
        self._port, self._name, self._password = port, name, password
        self._cookies: dict[str, str] = {}
        self._since = 0.0
        self._turn = threading.Lock()

    def logged_in(self) -> Self:
        """Sign in by the page, as a browser does.

        Raises PermissionError where that is refused, OSError for a server in trouble.
        """
        self._cookies.clear()
        code, _ = self._sent("GET", LOGIN, None, {})
        if "csrftoken" not in self._cookies:
            raise ConnectionError(f"The login page was answered with {code}: ask again.")
        known = {
            "username": self._name,
            "password": self._password,
            "csrfmiddlewaretoken": self._cookies["csrftoken"],
        }
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        code, _ = self._sent("POST", LOGIN, urlencode(known), form)
        if code >= 500:
            raise ConnectionError(f"The sign-in was answered with {code}: ask again.")
        if code != 302:
            raise PermissionError(f"The sign-in of {self._name} was answered with {code}.")
        self._since = time.monotonic()
        return self

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the HTTP code and the JSON value. Raises OSError where no answer came."""
        self._renew()
        text = None if body is None else json.dumps(body)
        known = {"Content-Type": "application/json", "X-CSRFToken": self._cookies["csrftoken"]}
        code, answer = self._sent(method, path, text, known | headers)
        return code, json.loads(answer or b"null")

    def _renew(self) -> None:
        """Sign in anew when the login is no longer fresh; other threads go on with the old one."""
        with self._turn:
            if time.monotonic() - self._since > FRESH_S:
                fresh = Person(self._port, self._name, self._password).logged_in()
                self._cookies, self._since = fresh._cookies, fresh._since

    def get(self, path: str) -> Any:
        """Return what is there. Raises Refused for a problem, OSError for a server in trouble."""
        code, found = self.ask("GET", path)
        if code >= 500:
            raise ConnectionError(f"The server answered {code}: ask again.")
        if code >= 400:
            raise Refused(code, found)
        return found

    def _sent(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        line = http.client.HTTPConnection(LOOPBACK, self._port, timeout=LIMIT_S)
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        try:
            line.request(method, path, body, headers | ({"Cookie": cookies} if cookies else {}))
            response = line.getresponse()
            self._keep(response.headers.get_all("Set-Cookie") or [])
            return response.status, response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(repr(error)) from error
        finally:
            line.close()

    def _keep(self, given: list[str]) -> None:
        for each in given:
            name, _, value = each.split(";")[0].partition("=")
            self._cookies[name.strip()] = value.strip()
