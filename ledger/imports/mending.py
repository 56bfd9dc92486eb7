"""From what was received to a plan and a report: the steps of a repair, for rows instead of a copy.

The plan keeps what no single provider needs (ids as they came, reasoning of any provider, results
of any size); the report is that of the copy for the transcript's own provider. Both leave out the
same calls and results. Pure.
"""

from dataclasses import dataclass
from typing import Any

from ledger.imports import copies, plans
from ledger.imports.plans import Plan
from ledger.imports.receiving import Received
from ledger.transcripts import refusals
from ledger.transcripts.blocks import of
from ledger.transcripts.log import Log
from ledger.transcripts.pairing import Flow, pair
from ledger.transcripts.profiles import profile, shape
from ledger.transcripts.reading import Reading
from ledger.transcripts.repair import Unrepairable
from ledger.transcripts.report import Report
from ledger.transcripts.settling import Settling
from ledger.transcripts.told import is_notice

UNCAPPED = 2**62


@dataclass(frozen=True, slots=True)
class Mended:
    """What a transcript becomes, and the report of its repair as JSON."""

    plan: Plan
    report: dict[str, Any]


def mended(received: Received) -> Mended:
    """Raises TranscriptUnreadable. What one provider would still refuse is no reason not to keep
    a conversation: the report then says what remains.
    """
    with plans.readable(received):
        flow = _settled(received)
        report = _report(received)
    return Mended(plans.planned(flow, received.format), report.to_json())


def _settled(received: Received) -> Flow:
    form = shape(received.format)
    rules = profile(copies.own_profile(received.format))
    log = Log()
    blocks = of(form.read(received.transcript), itemised=form.itemised)
    reading = Reading(rules, log, ours={})
    reading.run(blocks)
    flow = pair(blocks, is_notice)
    Settling(
        copies.NOBODY_READ, log, ours={}, doomed=reading.doomed, is_notice=is_notice,
        cap_bytes=UNCAPPED,
    ).run(flow)  # fmt: skip
    return flow


def _report(received: Received) -> Report:
    name = copies.own_profile(received.format)
    try:
        return copies.mend(received, profile(name)).report
    except Unrepairable as error:
        if error.report is None:
            raise refusals.unrepairable(error, name) from None
        return error.report
