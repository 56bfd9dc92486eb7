"""`manage.py sandbox`: the small outside world that the sandbox tools act on."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sandbox import program
from sandbox.addresses import Ports
from sandbox.folder import NoSandbox, data_folder


class Command(BaseCommand):
    """Serve mail, payments, renders and sign-ins on loopback until a signal comes."""

    help = (
        "Run the sandbox servers on loopback, in the folder CLEARHOUSE_DATA. Ports come from "
        "CLEARHOUSE_SANDBOX_SMTP_PORT and CLEARHOUSE_SANDBOX_HTTP_PORT; unset or 0 takes a "
        "free one. Both are written to sandbox.json in that folder."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            program.run(data_folder(), ports=Ports.of_environment(), say=self._say)
        except NoSandbox as error:
            raise CommandError(str(error)) from error

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()
