"""The three questions, answered wherever the ledger has proof, with the proof beside (console, 4).

Did it start? Did the effect happen? What did the model see? The verdict decides; this file gives
its answers a word, a family of colour, and for each proving event its number, kind and instant.
Nobody is asked what the model saw: where nothing is recorded, that is the answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.urls import reverse

from ledger import ids
from ledger.models import Event, ToolCall
from ledger.verdicts import Answer, Verdict, verdict_for
from ledger.vocabulary import FailurePoint, spoken

PROOFS_SHOWN = 6

FAILURE_POINTS: dict[str, str] = {
    FailurePoint.BEFORE_START: "before start. No attempt had crossed the boundary.",
    FailurePoint.DURING_EXECUTION: "during execution. The boundary was crossed and no result came.",
    FailurePoint.AFTER_EXECUTION: "after execution, before its result was written.",
    FailurePoint.DURING_HANDOFF: "during a compaction or hand-off.",
}
"""Where the break fell, as the end of a sentence."""


class Word(NamedTuple):
    """An answer in one or two words, and its family; `proven` says whether anything is open."""

    text: str
    family: str
    proven: bool = True


STARTED = {
    "yes": Word("Yes", "machine"),
    "no": Word("No", "plain"),
    "unknown": Word("Not known", "person", proven=False),
}
EFFECT = {
    "none": Word("No effect", "plain"),
    "not_begun": Word("No", "plain"),
    "did_not_happen": Word("No", "plain"),
    "happened": Word("Yes", "closed"),
    "unknown": Word("Not proved", "person", proven=False),
}
SAW = {
    "not_recorded": Word("Nothing recorded", "plain"),
    "offered": Word("Offered", "plain", proven=False),
    "fetched": Word("Fetched", "machine"),
    "result": Word("Its result", "machine"),
    "partial": Word("Partial output", "machine"),
    "notice": Word("A notice", "machine"),
    "statement": Word("A statement", "machine"),
    "corrected": Word("A correction", "machine"),
}


class Proof(NamedTuple):
    """An event that proves an answer."""

    seq: int
    kind: str
    at: datetime
    by: str
    address: str


@dataclass(frozen=True, slots=True)
class Question:
    """One row: the question, its answer, the sentence behind it, its proof."""

    number: int
    asks: str
    answer: Word
    sentence: str
    proof: list[Proof] = field(default_factory=list)
    more: int = 0
    deliveries: int = 0
    shown_at: str = ""


@dataclass(frozen=True, slots=True)
class Questions:
    """The failure point as a sentence, the three questions, and what decided so far."""

    rows: list[Question]
    failure: str
    decided: str
    verdict: Verdict


def of(call: ToolCall) -> Questions:
    """The three questions of a call, in three queries."""
    verdict = verdict_for(call)
    page = reverse("calls-detail", args=[ids.shown("call", call.id)])
    answers = (verdict.started, verdict.effect, verdict.model_saw)
    events = _events(call, page, {seq for answer in answers for seq in answer.events})
    asked = (
        ("Did it start?", verdict.started, STARTED),
        ("Did the effect happen?", verdict.effect, EFFECT),
        ("What did the model see?", verdict.model_saw, SAW),
    )
    return Questions(
        rows=[
            _question(number, asks, answer, words, events, page)
            for number, (asks, answer, words) in enumerate(asked, 1)
        ],
        failure=FAILURE_POINTS.get(verdict.failure_point, ""),
        decided=verdict.decided,
        verdict=verdict,
    )


def _events(call: ToolCall, page: str, wanted: Iterable[int]) -> dict[int, Proof]:
    rows = Event.objects.filter(call=call, seq__in=list(wanted))
    return {
        row.seq: Proof(row.seq, row.kind, row.at, str(row.actor), f"{page}#event-{row.seq}")
        for row in rows
    }


def _question(
    number: int,
    asks: str,
    answer: Answer,
    words: dict[str, Word],
    events: dict[int, Proof],
    page: str,
) -> Question:
    proof = [events[seq] for seq in sorted(set(answer.events)) if seq in events]
    plain = Word(spoken(answer.answer).capitalize(), "machine")
    return Question(
        number=number,
        asks=asks,
        answer=words.get(answer.answer, plain),
        sentence=answer.sentence,
        proof=proof[-PROOFS_SHOWN:],
        more=max(0, len(proof) - PROOFS_SHOWN),
        deliveries=len(answer.deliveries),
        shown_at=f"{page}#shown-title",
    )
