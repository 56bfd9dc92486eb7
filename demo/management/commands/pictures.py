"""`manage.py pictures`: a picture of every page of a Clearhouse that runs, to be looked at."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from demo import sights
from ledger.models import Workspace


class Command(BaseCommand):
    help = "Open every page in Chromium, light and dark, wide and narrow, and keep a picture."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--address", default="http://127.0.0.1:8000")
        parser.add_argument("--person", default="operator")
        parser.add_argument("--password-file", type=Path, help="what `up` printed, in a file")
        parser.add_argument("--to", type=Path, help="folder (pictures, in the state folder)")
        parser.add_argument("--only", action="append", metavar="NAME", help="these pages only")
        parser.add_argument("--look", action="append", metavar="LOOK", help="e.g. 390-dark")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            from demo import pictures  # needs Playwright, which only developers have
        except ImportError as missing:
            raise CommandError(f"Pictures need the extra `dev`: {missing}.") from missing
        data = Path(settings.ENVIRONMENT.data)
        password = options["password_file"] or data / "secrets" / "operator-password"
        folder = options["to"] or data / "pictures"
        workspace = Workspace.objects.earliest("created_at")
        wanted = [
            sight
            for sight in sights.of(workspace)
            if not options["only"] or any(sight[0].startswith(name) for name in options["only"])
        ]
        looks = [
            each for each in pictures.LOOKS if not options["look"] or each.name in options["look"]
        ]
        with pictures.signed_in(
            options["address"], options["person"], password.read_text().strip()
        ) as page:
            taken = list(pictures.take(page, wanted, looks, folder))
        self.stdout.write(f"{len(taken)} pictures of {len(wanted)} pages are in {folder}.")
