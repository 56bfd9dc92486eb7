"""What `manage.py transcript` does: look at a file, or mend it.

A repair prints its counts on standard error, so that standard output is the mended file alone.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ledger.transcripts import profiles
from ledger.transcripts.examination import Examination, examine
from ledger.transcripts.known import NOTHING_KNOWN, Known
from ledger.transcripts.profiles import Profile
from ledger.transcripts.repair import Options, Repaired, Unrepairable, repair
from ledger.transcripts.report import Counts, Report
from ledger.transcripts.validation import Violation
from standalone import replacing, transcript_files
from standalone.errors import Refusal
from standalone.steps import say
from standalone.transcript_files import Illegible, TranscriptFile

SOUND, FAULTY = 0, 1
ALL = "all"
STDIN = "-"
SHOWN_MAX = 10
"""How many faults of one provider are printed."""


def check(options: argparse.Namespace) -> int:
    """Print what is wrong with a file. Returns 1 where any provider asked would refuse it."""
    named = options.profile
    wanted = list(profiles.profiles().values()) if named == ALL else [profiles.profile(named)]
    found = examine(_read(options.file).value, format=options.format, profiles=wanted)
    print(_json(found.to_json()) if options.json else _told(found))
    return SOUND if found.is_sound else FAULTY


def mend(options: argparse.Namespace) -> int:
    """Write the mended file and its report. Returns 1, and writes no file, where faults remain."""
    if options.in_place and (options.output or options.file == STDIN):
        raise Refusal("--in-place writes to FILE itself: give neither -o nor - with it.")
    profile = profiles.profile(options.profile or options.format)
    file = _read(options.file)
    try:
        mended = _mended(options, file, profile)
    except Unrepairable as refusal:
        _report(options, refusal.report)
        _say_what_is_left(profile, refusal.violations)
        return FAULTY
    _write(options, file, mended)
    _report(options, mended.report)
    return SOUND


def _read(name: str) -> TranscriptFile:
    content = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    try:
        return transcript_files.read(content)
    except Illegible as refusal:
        raise Refusal(f"{name} cannot be read: {refusal} Nothing was written.") from None


def _mended(options: argparse.Namespace, file: TranscriptFile, profile: Profile) -> Repaired:
    offered = options.offered_tools
    return repair(
        file.value,
        format=options.format,
        profile=profile,
        ledger=_known(options.session),
        options=Options(
            frontier=options.frontier,
            unanswered=options.unanswered,
            failed_reply=options.failed_reply,
            late_results=options.late_results,
            offered_tools=None if offered is None else frozenset(offered.split(",")),
            cap_bytes=options.cap,
            notices=frozenset(options.notice),
        ),
    )


def _known(session: str | None) -> Known:
    """What the ledger knows; Django and its database are woken only for a session."""
    if session is None:
        return NOTHING_KNOWN
    from standalone import transcript_sessions

    return transcript_sessions.known_of(session)


def _write(options: argparse.Namespace, file: TranscriptFile, mended: Repaired) -> None:
    text = file.written(mended.body)
    if options.in_place:
        if text != file.text:
            replacing.replace(Path(options.file), text)
    elif options.output:
        Path(options.output).write_bytes(text.encode())
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()


def _report(options: argparse.Namespace, report: Report | None) -> None:
    if report is None:
        return
    if options.report:
        Path(options.report).write_text(_json(report.to_json()) + "\n")
    say(f"before: {_counted(report.before)}")
    say(f"after:  {_counted(report.after)}")


def _say_what_is_left(profile: Profile, left: Sequence[Violation]) -> None:
    say(f"{profile.name} would still refuse it, so nothing was written:")
    say("\n".join(_faults(left)))


def _told(found: Examination) -> str:
    lines = [_counted(found.counts)]
    lines += [f"{each.certainty}: {each.cause}, {_at(each.entries)}" for each in found.diagnosis]
    for name, violations in found.predicted.items():
        lines.append(f"{name}: {'would refuse' if violations else 'sound'}")
        lines += _faults(violations)
    return "\n".join(lines)


def _at(entries: Sequence[int]) -> str:
    return f"{'entry' if len(entries) == 1 else 'entries'} {', '.join(map(str, entries))}"


def _counted(counts: Counts) -> str:
    return ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in asdict(counts).items())


def _faults(violations: Sequence[Violation]) -> list[str]:
    """The first faults, each a line; ids are of others' making, so what is not print is escaped."""
    lines = [
        f"  entry {each.at}, {each.code}: {printable(each.text)}" for each in violations[:SHOWN_MAX]
    ]
    more = len(violations) - len(lines)
    return [*lines, f"  and {more} more; JSON lists them all"] if more else lines


def printable(text: str) -> str:
    """A text that moves no cursor and hides nothing on a terminal."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def _json(value: object) -> str:
    return json.dumps(value, indent=1)
