"""`manage.py watchdog`: sweep until told to stop. Two of them are harmless."""

import os
import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from recovery import watchdog


class Command(BaseCommand):
    help = "Fire due deadlines, find dead workers, ring again, take recovery's next steps."

    def handle(self, *args: Any, **options: Any) -> None:
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        self.stderr.write(f"The watchdog sweeps every {settings.ENVIRONMENT.sweep_s:g} s.")
        watchdog.watch(period_s=settings.ENVIRONMENT.sweep_s, stop=stopped.wait)
        self.stderr.write(f"The watchdog {os.getpid()} has stopped.")
