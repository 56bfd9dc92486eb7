"""`manage.py walk`: an operator's walk through a fresh demo, with pictures for the tour."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Walk from alarm to resolution on a fresh demo, in Chromium, and keep pictures."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--address", default="http://127.0.0.1:8000")
        parser.add_argument("--to", type=Path, help="folder (walk, in the state folder)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            from demo import pictures, walk  # needs Playwright, which only developers have
        except ImportError as missing:
            raise CommandError(f"The walk needs the extra `dev`: {missing}.") from missing
        data = Path(settings.ENVIRONMENT.data)
        folder = options["to"] or data / "walk"
        folder.mkdir(parents=True, exist_ok=True)
        password = (data / "secrets" / "operator-password").read_text().strip()
        with pictures.signed_in(options["address"], "operator", password) as page:
            page.set_viewport_size({"width": 1200, "height": 760})
            for step in walk.steps():
                step(walk.Walk(page, folder))
                self.stdout.write(f"{step.__name__}: {step.__doc__}")
