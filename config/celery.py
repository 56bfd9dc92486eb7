"""Celery as a doorbell: it wakes workers, the ledger decides. Settings: reliability, section 6."""

import os
import signal
from collections.abc import Callable
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django
from celery import Celery, signals
from kombu.entity import Queue

from config.environment import Environment

LONGEST_START_TO_CLOSE_S = 24 * 3600

# Without Celery's Django fixup: it closes connections around each task, and a worker's lock
# lives on its connection.
QUEUES = ("effects", "reads", "control")
app = Celery("clearhouse", fixups=[])
app.conf.update(
    broker_url=Environment().redis_url,
    result_backend=None,
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    task_acks_late=False,  # a lost attempt is found by its lease, never by the broker
    task_reject_on_worker_lost=False,
    task_create_missing_queues=False,
    task_queues=[Queue(name) for name in QUEUES],  # type: ignore[no-untyped-call]
    task_time_limit=LONGEST_START_TO_CLOSE_S + 30,
    task_publish_retry_policy={
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0.1,
        "interval_max": 0.2,
    },
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_proc_alive_timeout=15,  # a child slow to start on a busy machine is no dead one
    worker_max_tasks_per_child=500,
    worker_max_memory_per_child=400_000,  # KB
    worker_soft_shutdown_timeout=20,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "visibility_timeout": 3600,
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        "socket_timeout": 2,
        "socket_connect_timeout": 1,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "global_keyprefix": "clearhouse:",
    },
)
app.set_default()  # the app of every thread, not only of the importing one
app.autodiscover_tasks(["executors"])


@signals.import_modules.connect  # type: ignore[untyped-decorator]
def _prepare_django(**_: object) -> None:
    django.setup()


@signals.celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def _prepare_before_fork(**_: object) -> None:
    """Load what pool children need before they are forked: a new child works at once."""
    from executors import effects

    if effects.QUEUE in app.amqp.queues.consume_from:
        effects.prepare()


@signals.worker_process_init.connect  # type: ignore[untyped-decorator]
def _begin_holder(**_: object) -> None:
    """A pool child is a worker by itself: its row and its lock are its own."""
    from executors import effects

    effects.begin()


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def _begin_engines(**_: object) -> None:
    from executors import threads

    threads.begin(app.amqp.queues.consume_from)
    _hear_the_end()


def _hear_the_end() -> None:
    """Begin to drain with the signal itself: Celery's own is sent when the grace is over."""
    for number in (signal.SIGTERM, signal.SIGQUIT):
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, _draining_first(handler))


def _draining_first(handler: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
    """The handler that tells pool children and engines to drain, then does what was to be done."""

    def handle(number: int, frame: Any) -> Any:
        from executors import drain, threads

        drain.tell(drain.children(), [each.drain for each in threads.engines()])
        return handler(number, frame)

    return handle
