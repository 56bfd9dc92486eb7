"""`manage.py docs`: writes the generated pages of docs/reference/, or names the stale ones."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from dashboard import manual


class Command(BaseCommand):
    help = "Write the generated pages of docs/reference/; --check only compares them."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="write nothing; fail if one differs"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(settings.BASE_DIR) / "docs" / "reference"
        stale = [name for name, text in manual.pages().items() if _differs(folder / name, text)]
        if options["check"] and stale:
            raise CommandError(
                f"{', '.join(stale)}: not what the code says. Run `manage.py docs` and look at "
                "the difference before you commit it."
            )
        for name in stale:
            (folder / name).write_text(manual.pages()[name])
        self.stdout.write(f"{len(manual.PAGES)} pages, {len(stale)} written.")


def _differs(page: Path, text: str) -> bool:
    return not page.exists() or page.read_text() != text
