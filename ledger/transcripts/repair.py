"""Repair: a broken conversation in, one that its provider accepts out, and a report.

read, pair, settle, lay out, rewrite ids, cap, validate: pure steps, each in a file of its own,
linear in the number of entries. It invents no result and re-labels none (T5); a sound input comes
back as the very object that came in (T1); what is known to fail is never handed out (T23).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ledger import notices
from ledger.transcripts import profiles
from ledger.transcripts.assembling import assemble
from ledger.transcripts.blocks import Block, of
from ledger.transcripts.caps import is_over
from ledger.transcripts.collecting import collector_at_rest
from ledger.transcripts.counting import count, counted, diagnose, paired, repeated_prompts
from ledger.transcripts.identifiers import rewrite
from ledger.transcripts.known import NOTHING_KNOWN, Known
from ledger.transcripts.layout import arrange
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Entry, Result
from ledger.transcripts.options import DEFAULTS, Options
from ledger.transcripts.pairing import Flow, pair
from ledger.transcripts.profiles import Profile, Shape
from ledger.transcripts.reading import Reading
from ledger.transcripts.recognising import recognise
from ledger.transcripts.relinking import Relinking
from ledger.transcripts.report import Counts, Renamed, Report
from ledger.transcripts.settling import Settling
from ledger.transcripts.told import is_notice
from ledger.transcripts.validation import Violation, check
from ledger.transcripts.writing import cap, finished

__all__ = ["DEFAULTS", "Options", "Repaired", "Unrepairable", "repair"]


@dataclass(frozen=True, slots=True)
class Repaired:
    """The sent copy as entries and in its provider's shape, and what was done."""

    entries: list[Entry]
    body: Any
    report: Report


class Unrepairable(Exception):
    """The last validation still finds faults: the provider would refuse, so nothing is given out.

    `violations` lists them; `report` is that of the attempt, where there was one.
    """

    def __init__(self, violations: Sequence[Violation], report: Report | None = None) -> None:
        super().__init__("; ".join(sorted({violation.code for violation in violations})))
        self.violations, self.report = violations, report


def repair(
    transcript: Any,
    *,
    format: str,
    profile: Profile,
    ledger: Known = NOTHING_KNOWN,
    options: Options = DEFAULTS,
) -> Repaired:
    """Mend a transcript of `format` (the name of a format) for one provider.

    Raises UnknownProfile for a format nobody reads, Unreadable for input that is not of it (T24),
    CapTooSmall, Unrepairable where the provider would still refuse (T23).
    """
    with collector_at_rest():
        return _Repair(transcript, format, profile, ledger, options).run()


def predicted(transcript: Any, *, format: str, profile: Profile) -> list[Violation]:
    """What the provider would answer to a transcript as it stands; `at` counts its entries.

    Of another form, it is laid out for the provider first, with nothing mended. Raises
    UnknownProfile, Unreadable.
    """
    shape = profiles.shape(format)
    return foreseen(shape.read(transcript), shape, profile, around=_around(transcript))


def foreseen(
    entries: Sequence[Entry],
    shape: Shape,
    profile: Profile,
    *,
    around: Mapping[str, Any] | None = None,
    open_calls: bool = False,
) -> list[Violation]:
    """As `predicted`, for entries that are read already."""
    if shape.form == profile.shape.form:
        return check(entries, profile, around=around, open_calls=open_calls)
    blocks = arrange(of(entries, itemised=shape.itemised, own=False), profile, plain=True)
    laid_out, _ = finished(blocks, (), profile)
    found = check(laid_out, profile, open_calls=open_calls)
    return [replace(violation, at=_came_from(blocks, violation)) for violation in found]


def _came_from(blocks: Sequence[Block], violation: Violation) -> int:
    block = blocks[violation.at]
    pieces = block.pieces[violation.part : violation.part + 1] or block.pieces[:1]
    return pieces[0].at if pieces else block.at


class _Repair:
    """One run; each method is a step, in the order of `run`."""

    def __init__(
        self, transcript: Any, format: str, profile: Profile, ledger: Known, options: Options
    ) -> None:
        self.transcript, self.format, self.profile = transcript, format, profile
        self.ledger, self.options = ledger, options
        self.shape = profiles.shape(format)
        self.own = self.shape.name == profile.shape.name
        self.open_calls = options.frontier == "open"
        self.cap_bytes = options.cap_bytes or profile.cap_bytes
        self.is_notice = partial(is_notice, further=frozenset(options.notices))
        self.log = Log()

    def run(self) -> Repaired:
        same_form = self.shape.form == self.profile.shape.form
        self.around = _around(self.transcript) if same_form else None
        self.entries = self.shape.read(self.transcript)
        self.as_it_stands = paired(self.entries, self.shape)
        self.before = counted(self.as_it_stands, len(self.entries))
        self.predicted = foreseen(
            self.entries,
            self.shape,
            self.profile,
            around=self.around,
            open_calls=self.open_calls,
        )
        flow = self._settled()
        return self._as_it_came() if self._is_sound() else self._mended(flow)

    def _settled(self) -> Flow:
        blocks = of(self.entries, itemised=self.shape.itemised, own=self.own)
        ours = recognise((piece for block in blocks for piece in block.calls), self.ledger)
        reading = Reading(self.profile, self.log, ours=ours, offered=self.options.offered_tools)
        reading.run(blocks)
        flow = pair(blocks, self.is_notice, anywhere=self.shape.itemised)
        Relinking(flow, self.ledger, ours, self.log).run()
        settling = Settling(
            self.options,
            self.log,
            ours=ours,
            doomed=reading.doomed,
            is_notice=self.is_notice,
            cap_bytes=self.cap_bytes,
        )
        settling.run(flow)
        self.corrections = settling.corrections
        return flow

    def _is_sound(self) -> bool:
        """Whether the input goes out as it came (T1).

        A reply that broke off may stay where all of its calls are answered: nothing refuses it.
        """
        if self.format != self.profile.name or self.predicted or self.log.alters:
            return False
        over = any(
            is_over(part, self.cap_bytes)
            for entry in self.entries
            for part in entry.parts
            if isinstance(part, Result)
        )
        return not over

    def _as_it_came(self) -> Repaired:
        self.log.keep_reported()
        report = self._report(self.before, changed=False, ids=[], places={})
        return Repaired(self.entries, self.transcript, report)

    def _mended(self, flow: Flow) -> Repaired:
        blocks = assemble(flow, self.profile, self.corrections, self.log)
        laid_out = arrange(blocks, self.profile, log=self.log, open_calls=self.open_calls)
        ids = rewrite(laid_out, self.profile.ids)
        cap(laid_out, self.cap_bytes, self.log)
        entries, places = finished(
            laid_out, self.entries if self.own else (), self.profile, self.log
        )
        for at in repeated_prompts(self.as_it_stands):
            self.log.note("prompt_repeated", from_at=at)
        after = count(entries, self.profile.shape)
        changed = self._is_changed(entries)
        report = self._report(after, changed=changed, ids=ids, places=places)
        body = self.profile.shape.write(entries, self.around)
        self._refuse_what_would_fail(body, report)
        return Repaired(entries, body, report)

    def _refuse_what_would_fail(self, body: Any, report: Report) -> None:
        """Validate what is sent, read back as its receiver reads it (T23)."""
        sent = self.profile.shape.read(body)
        remaining = check(sent, self.profile, around=self.around, open_calls=self.open_calls)
        if remaining:
            raise Unrepairable(remaining, replace(report, remaining=remaining))

    def _is_changed(self, entries: Sequence[Entry]) -> bool:
        came = self.entries if self.own else []
        same = (now is before for now, before in zip(entries, came, strict=False))
        return len(entries) != len(came) or not all(same)

    def _report(
        self, after: Counts, *, changed: bool, ids: Sequence[Renamed], places: Mapping[int, int]
    ) -> Report:
        return Report(
            profile=self.profile.name,
            format=self.format,
            templates=notices.VERSION,
            before=self.before,
            after=after,
            changed=changed,
            predicted=self.predicted,
            changes=self.log.changes(places),
            diagnosis=diagnose(self.as_it_stands),
            ids=ids,
        )


def _around(transcript: Any) -> Mapping[str, Any] | None:
    return transcript if isinstance(transcript, Mapping) else None
