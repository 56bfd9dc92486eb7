"""Everything that the web, the workers and the watchdog import, in one import.

The supervisor of `manage.py up` loads this once and forks each program from it. Nothing here
may open a connection or start a thread: forks would share it.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

import celery.apps.worker
import celery.bin.celery
import celery.concurrency.prefork
import celery.concurrency.thread
import celery.worker.consumer
import celery.worker.strategy
import django.core.asgi
import django.core.management
import uvicorn.main

import config.celery
import config.fast
import config.pool
import config.urls
import executors.effects
import executors.runner
import executors.tasks
import executors.threads
import recovery.management.commands.watchdog


def begin() -> None:
    """In a fork: follow what its own environment says otherwise than the image's."""
    config.pool.follow_environment()
