"""`manage.py mark_restored`: after a restore from backup, before any worker starts (R16)."""

import argparse
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from recovery import restored


class Command(BaseCommand):
    help = (
        "Mark every open and recently settled side_effect call as suspect and open an incident "
        "for each: a backup is older than the world. Run it before any worker starts."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--by", required=True, help="the login of the person who restored it")
        parser.add_argument("--grounds", required=True, help="which backup, and why")
        parser.add_argument(
            "--settled-within-h", type=float, default=24.0,
            help="how far back, in hours before the newest event, settled calls are suspect",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        person = User.objects.filter(username=options["by"], is_active=True).first()
        if person is None:
            raise CommandError(
                f"Nobody logs in as {options['by']!r}, and who restored a ledger is recorded by "
                "name. Nothing was marked. Name the login of a person."
            )
        marked = restored.mark(
            settled_within=timedelta(hours=options["settled_within_h"]),
            by_id=str(person.pk),
            by_name=person.get_username(),
            grounds=options["grounds"],
        )
        self.stdout.write(
            f"Marked {marked.open} open and {marked.settled} settled calls. Each has an incident "
            "'restored'. Start the workers now; nothing of these is run again without proof or a "
            "person."
        )
