"""A decision as it is typed on a form: read, previewed, recorded; by resolution or correction.

The verbs of recovery decide what may be answered and what would be done; this file carries typed
text to them and keeps it, whatever they answer. It knows no rule of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.http import QueryDict

from ledger import ids
from ledger.conditions import Seen
from ledger.errors import Invalid, LoginStale
from ledger.handles import HandleToStore
from ledger.numbers import whole
from ledger.permissions import Person
from ledger.vocabulary import ResolutionAnswer
from recovery import casefiles, corrections, grounds, partly, resolutions, statements
from recovery.api import decision_shapes
from recovery.models import Incident, Resolution
from recovery.refusals import EvidenceIncomplete, call_or_refuse
from recovery.resolutions import Decision, Offer
from recovery.rulings import Wish

GROUNDS_MAX = 2_000
PARTLY = "partly"
DOCUMENT_BYTES_MAX = 200_000
A = ResolutionAnswer


@dataclass(frozen=True, slots=True)
class Typed:
    """What stands in the form, word for word; empty where nothing was typed."""

    answer: str = ""
    grounds: str = ""
    evidence: tuple[str, ...] = ()
    result: str = ""
    error: str = ""
    done: str = ""
    not_done: str = ""
    again: str = ""
    handle: str = ""
    handle_kind: str = ""
    endpoint: str = ""
    confirm: str = ""
    kind: str = "statement"
    finding: str = ""
    message: str = ""
    reference: str = ""
    body: str = ""
    version: int | None = None

    def decision(self) -> Decision:
        """The decision that was typed. Raises Invalid where the answer or the grounds lack."""
        answer, _, then = ("happened" if self.is_partly else self.answer).partition(":")
        if answer not in list(A):
            raise Invalid(detail="Choose an answer to question 2, then preview it.")
        if not self.grounds.strip():
            raise Invalid(detail="Say in one sentence why: the grounds are kept with the decision.")
        if len(self.grounds) > GROUNDS_MAX:
            raise Invalid(detail=f"Grounds have at most {GROUNDS_MAX} characters.")
        return Decision(
            wish=Wish(
                answer=A(answer),
                then=then,
                grounds=self.grounds,
                evidence=tuple(ids.read("evidence", each) for each in self.evidence),
                result=ids.read("evidence", self.result) if self.result else None,
                error=partly.error_of(self.done, self.not_done) if self.is_partly else self.error,
                handle=bool(self.handle),
            ),
            seen=Seen(version=self.version),
            confirm=self.confirm,
            handle=self._handle(),
        )

    @property
    def is_partly(self) -> bool:
        """Whether a part of the effect happened: two lists stand in the place of one error."""
        return self.answer == PARTLY

    def _handle(self) -> HandleToStore | None:
        if not self.handle:
            return None
        return HandleToStore(
            value=self.handle, kind=self.handle_kind or "http", endpoint=self.endpoint
        )

    def carried(self) -> list[tuple[str, str]]:
        """The fields that the preview carries to the record; what was typed to confirm is not."""
        plain = [
            (name, str(getattr(self, name) or ""))
            for name in self.__dataclass_fields__
            if name not in ("evidence", "confirm")
        ]
        return [*plain, *(("evidence", each) for each in self.evidence)]

    @property
    def holds_evidence(self) -> bool:
        """Whether evidence is typed that is not on the file yet."""
        return any(each.strip() for each in (self.message, self.reference, self.body, self.finding))

    def found(self) -> statements.Found:
        """The evidence that was typed. Raises EvidenceIncomplete for what no evidence is."""
        if self.kind not in ("checked", "document", "statement"):
            raise EvidenceIncomplete(detail="Evidence is checked, a document or a statement.")
        if self.finding not in ("happened", "did_not_happen", "in_progress", "unknown"):
            raise EvidenceIncomplete(detail="Say what the evidence says of the effect.")
        if not self.message.strip():
            raise EvidenceIncomplete(detail="Say what was looked at, and where.")
        if len(self.message) > GROUNDS_MAX:
            raise EvidenceIncomplete(
                detail=f"What was looked at has at most {GROUNDS_MAX} characters."
            )
        if len(self.reference) > GROUNDS_MAX:
            raise EvidenceIncomplete(detail=f"A reference has at most {GROUNDS_MAX} characters.")
        return statements.Found(
            kind=self.kind,
            finding=self.finding,
            message=self.message,
            reference=self.reference,
            body=self.body or None,
        )


def typed_of(post: QueryDict, files: Any = None) -> Typed:
    """Read the form. A file takes the place of pasted text. Raises Invalid for bytes."""
    empty = Typed()
    words = {
        name: post.get(name, getattr(empty, name))
        for name in Typed.__dataclass_fields__
        if name not in ("evidence", "version")
    }
    return Typed(
        **words | {"body": _document(files) or words["body"]},
        evidence=tuple(post.getlist("evidence")[:50]),
        version=whole(post.get("version")),
    )


def with_grounds(typed: Typed, incident: Incident, by: Person) -> Typed:
    """What was typed, with the grounds of the last such decision where they were ticked instead."""
    last = grounds.last_of(by, incident.call) if typed.again and incident.call else None
    if last is None or typed.grounds.strip():
        return typed
    return replace(typed, grounds=last.grounds, again="")


def _document(files: Any) -> str:
    given = files.get("file") if files else None
    if given is None:
        return ""
    if given.size > DOCUMENT_BYTES_MAX:
        raise Invalid(detail=f"A document has at most {DOCUMENT_BYTES_MAX // 1000} kB.")
    try:
        return str(given.read().decode())
    except UnicodeDecodeError:
        raise Invalid(
            detail="This file is no text. Paste what it says, and name the file in the reference."
        ) from None


EVIDENCE_KINDS = (
    ("statement", "Statement: a sentence only"),
    ("checked", "Checked: with its id or record"),
    ("document", "Document: an export, an answer"),
)
FINDINGS = (
    ("", "Choose what it says"),
    ("happened", "It happened"),
    ("did_not_happen", "It did not happen"),
    ("in_progress", "It is still going on"),
    ("unknown", "It says neither"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer on the form: allowed, or the verb's own sentence why not."""

    value: str
    title: str
    hint: str
    why_not: str = ""
    lock: Any = None


TITLES: dict[tuple[str, str], tuple[str, str]] = {
    ("happened", ""): (
        "Yes, it happened",
        "You saw it outside. It is never run again; the call settles as done.",
    ),
    ("partly", ""): (
        "Partly: some of it happened",
        "Say below what was done and what was not: the model reads both lists, and nothing runs.",
    ),
    ("did_not_happen", "repeat"): (
        "No, it did not happen: run it once more",
        "You looked, and it is not there. The same arguments and key are sent again.",
    ),
    ("did_not_happen", "close"): (
        "No, it did not happen: close the call",
        "Nothing is sent. The agent may submit it anew.",
    ),
    ("retry_same_key", ""): (
        "Cannot tell: repeat under the same key",
        "The outside keeps one effect for one key, so a repeat is safe.",
    ),
    ("attach_handle", ""): (
        "Still going: follow its handle",
        "You found the work outside. Paste its handle below; it is asked after at once.",
    ),
    ("probe_again", ""): (
        "Cannot tell yet: ask the outside again",
        "The probe of the tool's policy is run now; asking changes nothing.",
    ),
    ("abandon", ""): (
        "Nobody can know: give it up",
        "The call closes as abandoned and keeps showing that its effect may have happened.",
    ),
    ("stands", ""): ("The settlement stands", "The finding against it is wrong or says nothing."),
}
"""The words of each answer."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """One way to decide: its address word, what it offers, previews and records."""

    word: str
    title: str
    choices: Callable[[Incident, Person], list[Choice]]
    preview: Callable[[Incident, Decision, Person], dict[str, Any]]
    record: Callable[[Incident, Decision, Person], Resolution]
    extras: tuple[str, ...] = field(default=())


def _choices(incident: Incident, by: Person) -> list[Choice]:
    if incident.call is None:
        return []
    return [
        choice
        for each in resolutions.offers(incident.call, incident, by)
        for choice in _choices_of(each)
    ]


def _choices_of(offer: Offer) -> list[Choice]:
    """An answer as it stands on the form; that it happened can be said of a part of it, too."""
    words = f"{offer.answer}:{offer.then}".rstrip(":")
    one = Choice(words, *TITLES[str(offer.answer), offer.then], _reason(offer), offer.current)
    if offer.answer is not A.HAPPENED:
        return [one]
    return [one, Choice(PARTLY, *TITLES[PARTLY, ""], one.why_not, one.lock)]


def _reason(offer: Offer) -> str:
    """Why an answer may not be given; what a refusal says of its request is not of a form's row."""
    # With a fresh login it may be given: the form says so once, above all of them.
    may = offer.allowed or offer.code == LoginStale.code
    return "" if may else offer.why.partition(" Nothing was recorded.")[0]


def _preview(incident: Incident, decision: Decision, by: Person) -> dict[str, Any]:
    facts, ruling = resolutions.preview(incident_id=incident.id, decision=decision, by=by)
    return decision_shapes.preview(facts, ruling)


def _record(incident: Incident, decision: Decision, by: Person) -> Resolution:
    return resolutions.record(incident_id=incident.id, decision=decision, by=by)


CORRECTABLE = (A.HAPPENED, A.DID_NOT_HAPPEN, A.ABANDON, A.STANDS)


def _corrections(incident: Incident, by: Person) -> list[Choice]:
    call = incident.call
    if call is None:
        return []
    held = corrections.holds(call, casefiles.of(call, None))
    return [
        Choice(str(each), CORRECTED.get(str(each)) or TITLES[str(each), ""][0], "",
               "This is what is held already." if each is held else "")
        for each in CORRECTABLE
    ]  # fmt: skip


CORRECTED = {
    "happened": "It did happen",
    "did_not_happen": "It did not happen",
    "abandon": "It cannot be known",
}


def _preview_correction(incident: Incident, decision: Decision, by: Person) -> dict[str, Any]:
    made = corrections.preview(call_id=_call(incident), decision=decision, by=by)
    boxes = decision_shapes.preview(made.facts, made.ruling, correction=made.text)
    boxes["afterwards"]["sentence"] = made.ruling.afterwards
    return boxes


def _correct(incident: Incident, decision: Decision, by: Person) -> Resolution:
    return corrections.correct(call_id=_call(incident), decision=decision, by=by)


def _call(incident: Incident) -> UUID:
    return call_or_refuse(incident.call_id)


RESOLVING = Deciding(
    "resolution", "Resolve", _choices, _preview, _record, extras=("result", "error", "handle")
)
CORRECTING = Deciding(
    "correction", "Correct", _corrections, _preview_correction, _correct, extras=("result",)
)
