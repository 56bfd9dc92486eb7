"""The notifier: one loop that notices, fills the outbox, makes messages and tries them.

A program of its own, beside the watchdog: it is the one that can say that no watchdog sweeps,
and a receiver that takes ten seconds for its answer must not hold up a deadline (decision 0031).
Two of them are harmless. A channel has one sender at a time, so that one dead receiver costs
no other channel more than a thread.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from notifications import composing, pruning, routing, sending, sources
from notifications.transports import Outside

PERIOD_S = 1.0
PRUNE_EVERY = 600
"""Passes."""
SENDERS = 8

log = logging.getLogger(__name__)


def prepare() -> int:
    """One pass up to the messages: notice, route, compose. Nothing is sent."""
    return sources.notice() + routing.route() + composing.compose()


class Senders:
    """The threads that try messages, at most one for a channel."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._pool = ThreadPoolExecutor(SENDERS, thread_name_prefix="sender")
        self._busy: dict[UUID, Future[None]] = {}

    def start(self) -> int:
        """Begin with every channel that has something due and no sender; return how many."""
        self._busy = {each: under for each, under in self._busy.items() if not under.done()}
        due = [each for each in sending.channels_due() if each not in self._busy]
        for channel_id in due:
            self._busy[channel_id] = self._pool.submit(self._send, channel_id)
        return len(due)

    def _send(self, channel_id: UUID) -> None:
        try:
            sending.send_due(channel_id, self._outside)
        except (DatabaseError, InterfaceError) as error:
            log.warning("notifier.database_away error=%s", type(error).__name__)
        except Exception:
            # Its claim lapses, and the message is tried again; the other channels go on.
            log.exception("notifier.sender_failed channel=%s", channel_id)
        finally:
            connection.close()

    def end(self) -> None:
        """Wait for the tries under way, and begin no other."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def run(*, stop: Callable[[float], bool], outside: Outside | None = None) -> None:
    """Work until `stop(seconds)` says so; a database that is away is waited for."""
    senders = Senders(outside or Outside())
    for passes in count():
        try:
            connection.close_if_unusable_or_obsolete()
            prepare()
            senders.start()
            if passes % PRUNE_EVERY == 0:
                pruning.prune()
        except (DatabaseError, InterfaceError) as error:
            log.warning("notifier.database_away error=%s", type(error).__name__)
            connection.close()
        if stop(PERIOD_S):
            senders.end()
            return
