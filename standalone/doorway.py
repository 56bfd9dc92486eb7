"""Django's doorway to a command that needs no Django."""

import argparse
import importlib
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from standalone import entry


class Doorway(BaseCommand):
    """A management command whose arguments and work stand in `standalone.<word>`."""

    word = ""
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        importlib.import_module(f"standalone.{self.word}").arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        command = importlib.import_module(f"standalone.{self.word}")
        sys.exit(command.run(argparse.Namespace(**options)))


def doorway(word: str) -> type[Doorway]:
    """The Command class for one of `entry.COMMANDS`."""
    return type("Command", (Doorway,), {"word": word, "help": entry.COMMANDS[word]})
