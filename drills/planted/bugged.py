"""Starts a program with one planted bug: `python -m drills.planted.bugged BUG WORDS...`.

WORDS are those after the interpreter's own in the program's ordinary command. It asks the guard
of the fault points first, so it refuses in production and on any database but a drill's.
"""

import os
import runpy
import sys

from ledger import faults


def main(words: list[str]) -> None:
    """Ask, plant, and become the program. Raises FaultsRefused anywhere but in a drill."""
    faults.permitted(os.environ)
    name, *rest = words
    plant(name)
    become(rest)


def plant(name: str) -> None:
    """Replace the functions of one bug. Raises KeyError for a bug that is not known."""
    import django

    django.setup()
    from drills.planted.bugs import BUGS

    BUGS[name]()


def become(words: list[str]) -> None:
    """Run a module or a file as the interpreter would."""
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
