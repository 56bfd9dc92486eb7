"""A device authorization server (RFC 8628), small and strict about its intervals.

`POST /device/code`: begins a sign-in. `POST /token`: asks after it. `POST /device/approve`
with the user code: a person completes it, or denies it with `deny=true`. Sign-ins live in
memory: after a restart their codes are unknown, as after a provider's own loss.

For drills `/device/code` also takes `expires_in` and `interval` in seconds, and `hang_s`, a
wait before it answers at all; none of them above 900.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.servers.http import Answer, Request, Route

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # RFC 8628, section 6.1: no vowels, so no words
EXPIRES_IN_S = 900
INTERVAL_S = 5  # RFC 8628, section 3.2: the default
SLOW_DOWN_S = 5  # RFC 8628, section 3.5


@dataclass(slots=True)
class SignIn:
    """One sign-in under way. Instants are on the monotonic clock of this server."""

    user_code: str
    ends_at: float
    interval_s: float
    asked_at: float | None = None
    answer: str = ""  # "approved" or "denied" once a person has answered

    def token_reply(self, now: float) -> Answer:
        """Return what a poll is answered at `now`, and remember when it came."""
        early = self.asked_at is not None and now - self.asked_at < self.interval_s
        self.asked_at = now
        if now >= self.ends_at:
            return _error("expired_token")
        if early:
            self.interval_s += SLOW_DOWN_S
            return _error("slow_down")
        if self.answer == "approved":
            return Answer(200, _token())
        return _error("access_denied" if self.answer == "denied" else "authorization_pending")


class Devices:
    """The sign-ins of one server, by device code."""

    def __init__(self) -> None:
        self._sign_ins: dict[str, SignIn] = {}

    def routes(self) -> list[Route]:
        """Return the addresses of the device flow."""
        return [
            Route("POST", "/device/code", self._begin),
            Route("POST", "/device/approve", self._approve),
            Route("POST", "/token", self._token),
        ]

    async def _begin(self, request: Request) -> Answer:
        await asyncio.sleep(_seconds(request.fields, "hang_s", 0))
        letters = "".join(secrets.choice(LETTERS) for _ in range(8))
        expires_in_s = _seconds(request.fields, "expires_in", EXPIRES_IN_S)
        sign_in = SignIn(
            user_code=f"{letters[:4]}-{letters[4:]}",
            ends_at=time.monotonic() + expires_in_s,
            interval_s=_seconds(request.fields, "interval", INTERVAL_S),
        )
        device_code = secrets.token_urlsafe(32)
        self._sign_ins[device_code] = sign_in
        address = f"http://{request.host}/device/approve"
        return Answer(200, _begun(device_code, sign_in, expires_in_s, address))

    async def _approve(self, request: Request) -> Answer:
        wanted = str(request.fields.get("user_code", "")).upper()
        for sign_in in self._sign_ins.values():
            if secrets.compare_digest(sign_in.user_code.encode(), wanted.encode()):
                denied = str(request.fields.get("deny", "")).lower() == "true"
                sign_in.answer = "denied" if denied else "approved"
                return Answer(200, {"answer": sign_in.answer})
        return Answer(404, {"error": "unknown_user_code"})

    async def _token(self, request: Request) -> Answer:
        if request.fields.get("grant_type") != GRANT:
            return _error("unsupported_grant_type")
        device_code = str(request.fields.get("device_code", ""))
        sign_in = self._sign_ins.get(device_code)
        if sign_in is None:
            return _error("invalid_grant")
        answer = sign_in.token_reply(time.monotonic())
        if answer.code == 200:
            del self._sign_ins[device_code]  # a device code buys one token
        return answer


def _begun(device_code: str, sign_in: SignIn, expires_in_s: float, address: str) -> dict[str, Any]:
    return {
        "device_code": device_code,
        "user_code": sign_in.user_code,
        "verification_uri": address,
        "expires_in": expires_in_s,
        "interval": sign_in.interval_s,
    }


def _token() -> dict[str, Any]:
    token = secrets.token_urlsafe(32)
    return {"access_token": token, "token_type": "Bearer", "expires_in": 3600, "scope": "sandbox"}


def _error(code: str) -> Answer:
    return Answer(400, {"error": code})  # RFC 6749, section 5.2


def _seconds(fields: Mapping[str, Any], name: str, default: float) -> float:
    try:
        return min(max(0.0, float(fields.get(name, default))), EXPIRES_IN_S)
    except (TypeError, ValueError):
        return default
