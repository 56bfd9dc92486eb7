"""The commands that need no Django: `up`, `status`, `verify`, `drill`, `transcript`.

They run before settings can be complete (`up` makes the database that settings name) and
when settings are broken (`status` must still answer). Django lists them too, through
`management/commands`, as the same functions.
"""

import argparse
import importlib
from collections.abc import Sequence
from types import ModuleType

from standalone.attach import attach as attach  # re-exported: manage.py's one door to this package

COMMANDS = {
    "up": "Start PostgreSQL, Valkey, workers, watchdog and web; Ctrl-C stops all.",
    "status": "Say what runs, where and since when, and what is half-started.",
    "verify": "Run all tests on throw-away servers; one summary, one exit code.",
    "drill": "Rehearse failures on throw-away servers, and say what became of every call.",
    "transcript": "Check or repair a conversation in a file, by the rules of its provider.",
}
ELSEWHERE = {"drill": "drills.command"}
"""Commands whose module does not stand in this package."""


def knows(words: Sequence[str]) -> bool:
    """Whether these command-line words name one of our commands."""
    return bool(words) and words[0] in COMMANDS


def module_of(name: str) -> ModuleType:
    """The module with `arguments(parser)` and `run(options)` of a command."""
    return importlib.import_module(ELSEWHERE.get(name, f"standalone.{name}"))


def run(words: Sequence[str]) -> int:
    """Run `words[0]` with the rest as its arguments; returns the exit code."""
    name, *rest = words
    command = module_of(name)
    parser = argparse.ArgumentParser(prog=f"manage.py {name}", description=COMMANDS[name])
    command.arguments(parser)
    return int(command.run(parser.parse_args(rest)))
