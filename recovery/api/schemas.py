"""The shapes of decisions over the API. Strict, like those of the ledger."""

from typing import Annotated, Any, Literal

from pydantic import Field

from ledger.api.schemas import Strict, shown
from recovery import asides, histories

Grounds = Annotated[str, Field(min_length=1, max_length=2000)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]
Id = Annotated[str, Field(min_length=1, max_length=64)]
Answer = Literal[
    "happened", "did_not_happen", "retry_same_key", "attach_handle", "probe_again", "abandon"
]
Then = Literal["", "repeat", "close"]


class HandleIn(Strict):
    """A handle that a person found outside. Its value is kept encrypted and never shown."""

    value: Annotated[str, Field(min_length=1, max_length=4096)]
    kind: Annotated[str, Field(min_length=1, max_length=20)] = "http"
    endpoint: Annotated[str, Field(max_length=2000)] = ""


class ResolutionIn(Strict):
    """A decision: the answer, its grounds and evidence, and the version that was looked at."""

    model_config = shown(
        answer="happened",
        grounds="The provider's list has it, sent at 11:39:31.",
        evidence=["ev_0199a3c2e4f07cc1a5d7b1f0a2b3c4d5"],
        decision_version=2,
    )

    answer: Answer
    then: Then = ""
    grounds: Grounds
    evidence: Annotated[list[Id], Field(max_length=50)] = Field(default_factory=list)
    result: Id | None = None
    error: Annotated[str, Field(max_length=8000)] = ""
    handle: HandleIn | None = None
    decision_version: Version | None = None
    confirm: Annotated[str, Field(max_length=300)] = ""


class DisputeIn(Strict):
    """What is said instead of a decision that is disputed, and why."""

    model_config = shown(answer="happened", grounds="The bank's statement of today has it.")

    answer: Answer
    then: Then = ""
    grounds: Grounds


class AsideIn(Strict):
    """For how many minutes an incident is set aside, and why, if anything is to be said."""

    model_config = shown(minutes=60, grounds="The provider's status page says back at ten.")

    minutes: Annotated[int, Field(ge=1, le=asides.MINUTES_MAX)]
    grounds: Annotated[str, Field(max_length=2000)] = ""


class AssignmentIn(Strict):
    """The name of a member who may work on incidents here; an empty one for nobody."""

    model_config = shown(to="olga")

    to: Annotated[str, Field(max_length=150)]


class EvidenceIn(Strict):
    """What a person found outside: what was looked at, and what it says of the effect."""

    model_config = shown(
        kind="checked",
        finding="happened",
        message="Looked at: the provider's list of sent mails of today.",
        reference="https://mail.example/sent/4711",
    )

    kind: Literal["statement", "document", "checked"]
    finding: Literal["happened", "did_not_happen", "in_progress", "unknown"]
    message: Grounds
    reference: Annotated[str, Field(max_length=2000)] = ""
    body: Annotated[str, Field(max_length=200_000)] | None = None
    media_type: Annotated[str, Field(max_length=200)] = "text/plain"


class ProofOfDeathIn(Strict):
    """A person's word that the machine of a lost attempt is off."""

    model_config = shown(attempt=1, grounds="The host was powered off at 11:40; ticket 4711.")

    attempt: Version
    grounds: Grounds


class TakingBackIn(Strict):
    """Why a decision is taken back."""

    model_config = shown(grounds="I looked at the wrong day.")

    grounds: Grounds


class ApprovalIn(Strict):
    """The second person's answer, and the version that was looked at."""

    model_config = shown(approve=True, grounds="I see it in the list too.", decision_version=3)

    approve: bool
    grounds: Grounds
    decision_version: Version | None = None


class CorrectionIn(Strict):
    """What is held now of a settled call; `abandon` says that it cannot be known."""

    model_config = shown(
        answer="did_not_happen",
        grounds="The provider reversed its own list: nothing was sent.",
        evidence=["ev_0199a3c2e4f07cc1a5d7b1f0a2b3c4d5"],
        decision_version=5,
    )

    answer: Literal["happened", "did_not_happen", "abandon", "stands"]
    grounds: Grounds
    evidence: Annotated[list[Id], Field(max_length=50)] = Field(default_factory=list)
    result: Id | None = None
    decision_version: Version | None = None
    confirm: Annotated[str, Field(max_length=300)] = ""


class FilterIn(Strict):
    """Which open incidents are meant; an empty filter is refused, never read as all of them."""

    tool: Annotated[str, Field(max_length=128)] = ""
    cause: Annotated[str, Field(max_length=40)] = ""
    reason: Annotated[str, Field(max_length=40)] = ""
    failure_point: Annotated[str, Field(max_length=40)] = ""
    session: Annotated[str, Field(max_length=64)] = ""
    state: Annotated[str, Field(max_length=20)] = ""


class BulkIn(Strict):
    """One decision over many incidents, named or filtered. It is frozen first, then run."""

    model_config = shown(
        answer="happened",
        grounds="The provider's export of today has every one of them.",
        filter={"tool": "sandbox.send_mail"},
    )

    answer: Answer
    then: Then = ""
    grounds: Grounds
    incidents: Annotated[list[Id], Field(max_length=500)] = Field(default_factory=list)
    filter: FilterIn = Field(default_factory=FilterIn)
    evidence: dict[str, list[Id]] = Field(default_factory=dict)


class BulkStartIn(Strict):
    """What was typed to start a run of the highest level; empty for the others."""

    model_config = shown(confirm="")

    confirm: Annotated[str, Field(max_length=300)] = ""


class TrialIn(Strict):
    """The policy that is tried, and on how many of the last calls and days."""

    model_config = shown(
        policy={"recovery_class": "side_effect", "timeouts": {"schedule_to_close_s": 900}},
        calls=500,
        days=7,
    )

    policy: dict[str, Any]
    calls: Annotated[int, Field(ge=1, le=histories.CALLS_MAX)] = histories.CALLS_MAX
    days: Annotated[int, Field(ge=1, le=histories.DAYS_MAX)] = histories.DAYS_MAX
