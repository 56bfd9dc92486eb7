"""What a body reads as, for the validation of what goes out (T23), read back only where it must be.

An entry of plain texts, calls with objects and results of texts is written by every shape so that
it reads the same: a property test asks every provider. Anything else is read back as its receiver
reads it: entries given out as they came, reasoning, media, members of one form, odd places.
"""

from collections.abc import Sequence
from typing import Any

from ledger.transcripts.neutral import Call, Entry, Opaque, Part, Result, Role, Text
from ledger.transcripts.profiles import Profile, ResultsIn
from ledger.transcripts.shapes import unnamed


def as_read(entries: Sequence[Entry], body: Any, profile: Profile) -> Sequence[Entry]:
    """The entries that `body` was written from where all are plain, else those that it reads as."""
    alone = profile.results_in is ResultsIn.EACH
    if all([_is_plain(entry, at, alone) for at, entry in enumerate(entries)]):
        return entries
    return profile.shape.read(body)


def _is_plain(entry: Entry, at: int, alone: bool) -> bool:
    """Whether every shape writes it so that it reads the same. `alone`: one result an entry."""
    if entry.raw is not None or entry.opaque or entry.screen_only or not entry.parts:
        return False
    if entry.role is Role.TOOL and alone and len(entry.parts) > 1:
        return False
    if entry.role is Role.SYSTEM and at:
        return False
    called = False
    for part in entry.parts:
        # Chat messages have no order between texts and calls: a text behind one would move.
        if (called and isinstance(part, Text)) or not _is_plain_part(part, entry.role):
            return False
        called = called or isinstance(part, Call)
    return True


def _is_plain_part(part: Part, role: Role) -> bool:
    if isinstance(part, Opaque) or part.opaque:
        return False
    if isinstance(part, Text):
        return part.text != ""
    if isinstance(part, Call):
        return role is Role.ASSISTANT and _is_plain_call(part)
    return role is Role.TOOL and _is_plain_result(part)


def _is_plain_call(call: Call) -> bool:
    named = bool(call.id) and bool(call.name) and not unnamed.FORM.fullmatch(call.id or "")
    return named and call.kind == "function" and call.arguments is not None and not call.unparsed


def _is_plain_result(result: Result) -> bool:
    texts = all([isinstance(part, Text) and not part.opaque for part in result.parts])
    return texts and bool(result.answers) and result.kind == "function"
