"""API keys of agents: `clh_<env>_<id>_<secret>_<check>` (S10).

The id is public, the secret is kept as a keyed hash only, the check is a CRC-32 that lets a
mistyped or made-up key be refused without a look-up. A verdict on a key is remembered for at
most five seconds, so that a revocation bites within them.
"""

import hmac
import re
import secrets as random
import time
import zlib
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from ledger import secrets
from ledger.errors import LedgerError
from ledger.models import Agent, ApiKey
from ledger.models.fields import ClockTimestamp

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SCOPES = (
    "calls:submit",
    "calls:read",
    "turns:write",
    "worker",
    "interrupts:answer",
    "export:read",
)
AGENT_SCOPES = ("calls:submit", "calls:read", "turns:write")
REMEMBERED_S = 5.0
LIFETIME = timedelta(days=90)
_SHAPE = re.compile(r"clh_(live|test)_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})_([0-9A-Za-z]{6})\Z")


class KeyRefused(LedgerError):
    """No valid key came with the request, or the key has expired or was revoked."""

    code = "authentication_required"
    http = 401
    sentence = (
        "This needs a valid API key in the header 'Authorization: Bearer clh_…'. Nothing was "
        "done. Check the key, or have an admin issue a new one."
    )


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a key speaks for."""

    key_id: str
    workspace_id: UUID
    agent_id: UUID
    scopes: frozenset[str]


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def _check_of(front: str) -> str:
    return _base62(zlib.crc32(front.encode()), 6)


def issue(*, agent: Agent, scopes: tuple[str, ...] = AGENT_SCOPES, env: str = "live") -> str:
    """Make a key for an agent and return it: the only time it can be read."""
    id_ = "".join(random.choice(ALPHABET) for _ in range(12))
    secret = _base62(int.from_bytes(random.token_bytes(32)), 43)
    ApiKey.objects.create(
        id=id_,
        workspace_id=agent.workspace_id,
        agent=agent,
        secret_hmac=secrets.keyed_hash(f"{env}_{secret}"),  # so that the prefix is proven too
        scopes=list(scopes),
        expires_at=ClockTimestamp() + LIFETIME,
    )
    front = f"clh_{env}_{id_}_{secret}"
    return f"{front}_{_check_of(front)}"


_remembered: dict[bytes, tuple[float, Principal]] = {}


def principal_of(key: str) -> Principal:
    """Whom this key speaks for. Raises KeyRefused, in the same time for every reason."""
    known = remembered(key)
    if known is not None:
        return known
    principal = _look_up(key)
    if len(_remembered) > 10_000:
        _remembered.clear()
    _remembered[secrets.keyed_hash(key)] = (time.monotonic() + REMEMBERED_S, principal)
    return principal


def remembered(key: str) -> Principal | None:
    """The principal of a key that was looked up within the last seconds, else None: no I/O."""
    known = _remembered.get(secrets.keyed_hash(key))
    return known[1] if known is not None and time.monotonic() < known[0] else None


def was_known(key: str) -> bool:
    """Whether this process has ever found the key right; no I/O."""
    return secrets.keyed_hash(key) in _remembered


def _look_up(key: str) -> Principal:
    match = _SHAPE.match(key)
    if match is None or match[4] != _check_of(key[:-7]):
        raise KeyRefused()
    found = ApiKey.objects.filter(
        id=match[2], revoked_at__isnull=True, expires_at__gt=ClockTimestamp()
    ).first()
    expected = bytes(found.secret_hmac) if found else bytes(32)
    if (
        not hmac.compare_digest(expected, secrets.keyed_hash(f"{match[1]}_{match[3]}"))
        or found is None
    ):
        raise KeyRefused()
    ApiKey.objects.filter(id=found.id).update(last_used_at=ClockTimestamp())
    return Principal(found.id, found.workspace_id, found.agent_id, frozenset(found.scopes))


def revoke(*, key_id: str) -> None:
    """End a key; it is refused everywhere within five seconds."""
    ApiKey.objects.filter(id=key_id, revoked_at__isnull=True).update(revoked_at=ClockTimestamp())


def forget() -> None:
    """Look every key up anew."""
    _remembered.clear()
