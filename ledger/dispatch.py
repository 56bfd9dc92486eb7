"""The doorbell: it wakes a worker, and that is all. PostgreSQL is the record (R15).

One wake-up waits per queue, however many calls are due: a ring is published only if no other
is on its way. A ring may be lost or come twice; the sweep rings again what stays unclaimed.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from uuid import UUID

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import KombuError
from redis import Redis, RedisError
from redis.backoff import ExponentialBackoff
from redis.client import PubSub
from redis.retry import Retry

DOORBELL = "clearhouse.doorbell"
QUEUES = ("effects", "reads", "control")
RING_AGAIN_S = (2.0, 5.0, 15.0, 60.0)
ON_ITS_WAY_S = 1.0
BREAKER_S = 10.0

log = logging.getLogger(__name__)
_silent_until = 0.0


@cache
def _redis() -> "Redis":
    return Redis.from_url(
        settings.ENVIRONMENT.redis_url,
        socket_timeout=1,
        socket_connect_timeout=1,
        health_check_interval=25,
        max_connections=50,
        retry=Retry(ExponentialBackoff(base=0.05, cap=0.2), 1),
    )


def _flag(queue: str) -> str:
    return f"clearhouse:rung:{queue}"


def _bell(queue: str) -> str:
    return f"clearhouse:bell:{queue}"


def _may_ring(queue: str) -> bool:
    """Whether no wake-up is on its way to a worker or waits in the queue already."""
    with _redis().pipeline(transaction=False) as pipe:
        pipe.set(_flag(queue), "1", nx=True, px=int(ON_ITS_WAY_S * 1000))
        pipe.llen(f"clearhouse:{queue}")
        first, waiting = pipe.execute()
    return bool(first) and not waiting


def ring_after_commit(queues: Iterable[str], call_id: UUID | None = None) -> None:
    """Ring once the transaction has committed; a missing broker costs a delay, never a call."""
    wanted = sorted(set(queues))
    transaction.on_commit(lambda: ring(wanted, call_id), robust=True)


def ring(queues: Iterable[str], call_id: UUID | None = None, *, again: bool = False) -> bool:
    """Wake a worker of each queue, unless one is being woken. False if the broker is away.

    A worker that is awake and listening hears it at once; only where none is, a message of
    Celery's wakes one. With `again` that message is sent in any case: who listens may be hung.
    After a failed publish nothing is published for ten seconds: the sweep takes over meanwhile.
    """
    global _silent_until
    if time.monotonic() < _silent_until:
        return False
    try:
        for queue in queues:
            heard = _redis().publish(_bell(queue), "") > 0
            if (again or not heard) and _may_ring(queue):
                current_app.send_task(
                    DOORBELL, args=[queue, str(call_id or "")], queue=queue, ignore_result=True
                )
    except (RedisError, KombuError, OSError) as error:
        log.warning("doorbell.silent broker=%s for=%ss", type(error).__name__, BREAKER_S)
        _silent_until = time.monotonic() + BREAKER_S
        return False
    return True


def answered(queue: str) -> None:
    """Say that a worker has come: from now on a ring is a new one. Never raises."""
    try:
        _redis().delete(_flag(queue))
    except (RedisError, OSError):
        log.debug("doorbell.flag_kept queue=%s", queue)


@contextmanager
def listening(queue: str) -> Iterator[Callable[[float], bool]]:
    """Be awake: gives `heard(seconds)`, which waits for the next ring of this queue.

    Look into the ledger once more after leaving: a ring just before it was heard by nobody.
    """
    line = _redis().pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    try:
        try:
            line.subscribe(_bell(queue))
        except (RedisError, OSError):
            yield lambda seconds: False
            return
        yield lambda seconds: _next(line, seconds)
    finally:
        line.close()


def _next(line: PubSub, seconds: float) -> bool:
    try:
        heard = line.get_message(timeout=seconds) is not None
        while heard and line.get_message(timeout=0) is not None:
            pass  # many rings are one
        return heard
    except (RedisError, OSError):
        return False


def is_there() -> bool:
    """Whether the broker answers."""
    try:
        return bool(_redis().ping())
    except (RedisError, OSError):
        return False
