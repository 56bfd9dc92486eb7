"""`manage.py transcript`: check and repair conversations from the command line.

Both read a file and the rules of the providers: no database, no network, no Django, unless a
session is named. Exit codes: 0 sound or repaired, 1 faults found or left, 2 unreadable or wrong
use.
"""

import argparse
from collections.abc import Callable

from ledger.transcripts import profiles
from ledger.transcripts.neutral import Unreadable
from ledger.transcripts.profiles import UnknownProfile
from standalone import transcript_acts as acts
from standalone.errors import Refusal
from standalone.steps import say
from standalone.transcript_acts import printable

UNREADABLE = 2
CHOICES = {
    "frontier": ("close", "open"),
    "unanswered": ("close", "drop"),
    "failed-reply": ("drop", "close"),
    "late-results": ("correction", "in_place"),
}
"""What a repair may choose; the first of each is the default (transcripts, part b)."""

ACTS: dict[str, Callable[[argparse.Namespace], int]] = {
    "check": acts.check,
    "repair": acts.mend,
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `transcript`."""
    words = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    _check(words.add_parser("check", help="say what providers would refuse in a file"))
    _repair(words.add_parser("repair", help="mend a file for a provider"))


def _check(parser: argparse.ArgumentParser) -> None:
    _file(parser)
    parser.add_argument("--profile", default=acts.ALL, help="a provider, or all (the default)")
    parser.add_argument("--json", action="store_true", help="print the examination as JSON")


def _repair(parser: argparse.ArgumentParser) -> None:
    _file(parser)
    parser.add_argument("--profile", help="the provider to mend it for; the format's own if none")
    parser.add_argument("-o", "--output", metavar="FIXED", help="write here, not to the terminal")
    parser.add_argument("--in-place", action="store_true", help="write to FILE, keep FILE.orig")
    parser.add_argument("--report", metavar="REPORT", help="write the report here, as JSON")
    parser.add_argument("--session", help="use what the ledger knows of this session")
    for name, choices in CHOICES.items():
        parser.add_argument(f"--{name}", choices=choices, default=choices[0])
    parser.add_argument("--offered-tools", help="names with commas; calls of others are dropped")
    parser.add_argument("--cap", type=int, metavar="BYTES", help="the most text of one result")
    parser.add_argument("--notice", action="append", default=[], help="a text that is no result")


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="JSON, or one entry a line; - for stdin")
    parser.add_argument("--format", required=True, help=", ".join(profiles.formats()))


def run(options: argparse.Namespace) -> int:
    """Do what was asked; returns the exit code."""
    try:
        return ACTS[options.act](options)
    except Refusal as refusal:
        say(str(refusal))
    except Unreadable as refusal:
        where, why = printable(refusal.pointer) or "/", printable(refusal.detail)
        said = f"{options.file} is not of the format {options.format}: at {where}, {why}."
        say(f"{said} Nothing was written.")
    except UnknownProfile as refusal:
        say(f"{refusal} is unknown; take one of {', '.join(refusal.names)}.")
    except OSError as refusal:
        say(f"{refusal.filename or 'The output'}: {refusal.strerror}.")
    return UNREADABLE
