"""Django's doorway to a command that needs no Django."""

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from standalone import entry


class Doorway(BaseCommand):
    """A management command whose arguments and work stand in `entry.module_of(word)`."""

    word = ""
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        entry.module_of(self.word).arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        command = entry.module_of(self.word)
        sys.exit(command.run(argparse.Namespace(**options)))


def doorway(word: str) -> type[Doorway]:
    """The Command class for one of `entry.COMMANDS`."""
    return type("Command", (Doorway,), {"word": word, "help": entry.COMMANDS[word]})
