"""`manage.py notifier`: tell people until told to stop. Two of them are harmless."""

import os
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from notifications import notifier


class Command(BaseCommand):
    help = "Notice what people are to be told, and send it by webhook, Slack and mail."

    def handle(self, *args: Any, **options: Any) -> None:
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        self.stderr.write(f"The notifier looks every {notifier.PERIOD_S:g} s.")
        notifier.run(stop=stopped.wait)
        self.stderr.write(f"The notifier {os.getpid()} has stopped.")
