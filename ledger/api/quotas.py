"""How much one caller may ask for: every quota of the API, as data (console, section 22, rule 8).

A request is of one kind and spends from that kind's quotas: its address's before its body is read,
then its key's or person's, then its workspace's. Who floods the ledger with calls can still cancel
them, and a person behind the same proxy can still decide. All is counted in this web's memory, so
that nothing is asked which could be away (S20, docs/decisions/0034).
"""

import logging
from datetime import timedelta
from enum import StrEnum
from math import ceil
from typing import Any
from uuid import UUID

from django.conf import settings
from throttled import RateLimiterType, Throttled, rate_limiter
from throttled.store import MemoryStore

from ledger.errors import LedgerError
from ledger.networks import network_of

WINDOW_S = 10
SPENDERS_MAX = 16384  # of one quota; those who asked longest ago are forgotten first

API = "/api/v1/"
CALLS_PATH = f"{API}calls"
DETAIL_SLASHES = CALLS_PATH.count("/") + 1
ENDS = frozenset({"cancellation", "interruption", "end"})


log = logging.getLogger(__name__)


class Kind(StrEnum):
    """What a request is for, as its quota is named in `RateLimit-Policy`."""

    CALLS = "calls"
    POLLS = "polls"
    ACTS = "acts"
    REQUESTS = "requests"


def kind_of(method: str, path: str, *, has_key: bool) -> Kind:
    """What a request is for; told before anything of it is parsed."""
    last = path.rpartition("/")[2]
    if method in ("GET", "HEAD"):
        is_poll = (
            has_key and path.startswith(f"{CALLS_PATH}/") and path.count("/") == DETAIL_SLASHES
        )
        return Kind.POLLS if is_poll else Kind.REQUESTS
    if not has_key or last in ENDS:
        return Kind.ACTS
    return Kind.CALLS if path == CALLS_PATH or last == "replies" else Kind.REQUESTS


class QuotaSpent(LedgerError):
    """A caller asked for more than its quota gives within the window."""

    code = "rate_limited"
    http = 429
    sentence = (
        "The quota '{name}' of {limit} in {window_s} s is spent. Nothing was done. Try again in "
        "{retry_after_s} s, and ask more slowly: the header RateLimit says what is left."
    )


def _counter(limit: int) -> Throttled:
    return Throttled(
        using=RateLimiterType.GCRA.value,
        quota=rate_limiter.per_duration(timedelta(seconds=WINDOW_S), limit, limit),
        store=MemoryStore(options={"MAX_SIZE": SPENDERS_MAX}),
    )


_told = _counter(1)


class Quota:
    """So much a second for each spender, of which a window's worth may come at once."""

    def __init__(self, name: str, a_second: int) -> None:
        self.name, self.limit = name, a_second * WINDOW_S
        self.policy = f'"{name}";q={self.limit};w={WINDOW_S}'
        self._counter = _counter(self.limit)

    def spend(self, spender: str, cost: int = 1) -> None:
        """Take `cost` of what the spender has left. Raises QuotaSpent, and takes nothing then."""
        found = self._counter.limit(spender, cost)
        if found.limited:
            self._refuse(spender, found.state.retry_after)

    def look(self, spender: str) -> None:
        """Raise QuotaSpent where nothing is left; take nothing."""
        found = self._counter.peek(spender)
        if found.remaining < 1:
            self._refuse(spender, found.retry_after)

    def left(self, spender: str) -> str:
        """What is left, and the seconds until all of it is again, as an item of `RateLimit`."""
        found = self._counter.peek(spender)
        return f'"{self.name}";r={found.remaining};t={ceil(found.reset_after)}'

    def _refuse(self, spender: str, retry_after_s: float) -> None:
        if not _told.limit(f"{self.name} {spender}").limited:
            log.warning("quota.spent quota=%s spender=%s", self.name, spender)
        raise QuotaSpent(
            name=self.name, limit=self.limit, window_s=WINDOW_S,
            retry_after_s=max(1, ceil(retry_after_s)),
        )  # fmt: skip


_SET = settings.ENVIRONMENT
OF_ADDRESSES = {kind: Quota("address", _SET.quota_address) for kind in Kind}
OF_CALLERS = {kind: Quota(kind, getattr(_SET, f"quota_{kind}")) for kind in Kind}
OF_WORKSPACES = Quota("workspace", _SET.quota_workspace)
OF_REFUSED_KEYS = Quota("refused_keys", _SET.quota_refused_keys)


class Spending:
    """What one request spends from, as far as it is known who asks."""

    __slots__ = ("kind", "network", "spent_from")

    def __init__(self, kind: Kind, address: str) -> None:
        self.kind, self.network = kind, network_of(address)
        self.spent_from: list[tuple[Quota, str]] = []

    def arrive(self) -> None:
        """Spend from the address's quota. Raises QuotaSpent, and tells of that quota then."""
        quota = OF_ADDRESSES[self.kind]
        try:
            quota.spend(self.network)
        except QuotaSpent:
            self.spent_from = [(quota, self.network)]
            raise

    def as_caller(self, caller: str, workspace_id: UUID) -> None:
        """Spend from the caller's quota, and from its workspace's. Raises QuotaSpent."""
        self.spent_from = _of(self.kind, caller, workspace_id)
        for quota, spender in self.spent_from:
            quota.spend(spender)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """`RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11)."""
        if not self.spent_from:
            return []
        policies = ", ".join(quota.policy for quota, _ in self.spent_from)
        left = ", ".join(quota.left(spender) for quota, spender in self.spent_from)
        return [(b"ratelimit-policy", policies.encode()), (b"ratelimit", left.encode())]


def spend_more(caller: str, workspace_id: UUID, calls: int) -> None:
    """Take what a body of so many calls costs beyond its request. Raises QuotaSpent."""
    if calls > 1:
        for quota, spender in _of(Kind.CALLS, caller, workspace_id):
            quota.spend(spender, calls - 1)


def _of(kind: Kind, caller: str, workspace_id: UUID) -> list[tuple[Quota, str]]:
    own = (OF_CALLERS[kind], caller)
    return [own] if kind is Kind.ACTS else [own, (OF_WORKSPACES, workspace_id.hex)]


def spending_of(request: Any) -> Spending:
    """A Django request's spending; made here where no ASGI server stands before the view."""
    scope = getattr(request, "scope", None) or {}
    return scope.get("spending") or Spending(
        kind_of(request.method, request.path, has_key="Authorization" in request.headers),
        request.META.get("REMOTE_ADDR", ""),
    )
