"""Who calls the API: an agent by its key, a person by a login with or without its token."""

import json
from typing import Any

import httpx2
from django.conf import settings

from ledger import keys
from ledger.models import Agent
from tests import cast

API = "/api/v1"
PROBLEM_MEMBERS = {"type", "title", "status", "detail", "instance", "code", "request_id"}


class Caller:
    """An HTTP client of the API; paths are relative to /api/v1."""

    def __init__(self, address: str, **headers: str) -> None:
        self.http = httpx2.Client(base_url=address, headers=headers, timeout=40)

    def get(self, path: str, **more: Any) -> httpx2.Response:
        return self.send("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        return self.send("POST", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        return self.send("PUT", path, body, **more)

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        if body is not None:
            more["content"] = json.dumps(body)
            more["headers"] = {"Content-Type": "application/json", **more.get("headers", {})}
        return self.http.request(method, API + path, **more)

    def close(self) -> None:
        self.http.close()


def an_agents(address: str, agent: Agent, *scopes: str) -> Caller:
    """A caller with a fresh key of this agent."""
    key = keys.issue(agent=agent, scopes=scopes or keys.AGENT_SCOPES)
    return Caller(address, Authorization=f"Bearer {key}")


def logged_in(address: str, name: str, *, token: bool = True) -> Caller:
    """A person with a login; with `token` every request carries the CSRF token.

    The login page is tested in `tests/browser`; its hash alone takes a fifth of a second.
    """
    caller = Caller(address)
    caller.http.get("/login")
    caller.http.cookies.set(settings.SESSION_COOKIE_NAME, cast.a_login(name))
    if token:
        caller.http.headers["X-CSRFToken"] = _token(caller)
    return caller


def _token(caller: Caller) -> str:
    return str(caller.http.cookies["csrftoken"])


def the_problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document of a refusal; every member is there and agrees with the answer."""
    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document.keys() >= PROBLEM_MEMBERS
    assert (document["status"], document["code"]) == (status, code), document
    assert document["instance"] == answer.request.url.path
    assert document["request_id"] == answer.headers["X-Request-Id"]
    assert document["type"] == f"/problems/{code}"
    assert document["detail"].endswith((".", "…")), document["detail"]
    return document
