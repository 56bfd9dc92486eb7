"""Everything that the web, the workers, the watchdog and the notifier import, in one import.

The supervisor of `manage.py up` loads this once and forks each program from it. Nothing here
may open a connection or start a thread: forks would share it.
"""

import importlib
import os

import django

from config import pool

MODULES = (
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.concurrency.thread",
    "celery.worker.consumer",
    "celery.worker.strategy",
    "config.asgi",
    "config.urls",  # which the web resolves at its first request
    "django.core.management",
    "executors.effects",
    "executors.tasks",
    "executors.threads",
    "notifications.management.commands.notifier",
    "recovery.management.commands.watchdog",
    "uvicorn.main",
)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()
for name in MODULES:
    importlib.import_module(name)


def begin() -> None:
    """In a fork: follow what its own environment says otherwise than the image's."""
    pool.follow_environment()
