"""From an answer, or from none, to what it proves about the attempt.

The proofs are rows of `executors.network`; this file only gathers what the rows need and
puts the sentence together. Evidence names the origin and never the path, which carries
arguments, nor any header.
"""

from dataclasses import dataclass
from typing import Any

from executors.contract import Outcome, Result
from executors.http.client import Answer, Request
from executors.http.conditions import NotJson, read_json
from executors.http.secrets import Revealed
from executors.http.wire import Traffic, Unanswered
from executors.network import Proof, proof_of_fault, retry_after_s
from ledger.vocabulary import Cause, Meaning

MAX_ERROR_BODY = 64 * 1024
"""Bytes kept of the body of an answer that is not a success."""

WAITS_NAMED = frozenset({429, 503})
"""Answers whose Retry-After is a wait before a repeat (semantics, 4.5)."""

MEANS = {
    Meaning.NOT_BEGUN: "No byte of the request had been handed over, so nothing was changed.",
    Meaning.REFUSED: "The outside refused the request, so its effect did not happen.",
    Meaning.KNOWN: "The work itself was done.",
    Meaning.UNKNOWN: "Whether its effect happened is not known; ask the outside before a repeat.",
}
ONLY_READS = "The request only reads; nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request of an attempt, for the sentences and the evidence about it."""

    request: Request
    traffic: Traffic
    revealed: Revealed
    reads: bool

    @property
    def name(self) -> str:
        return f"{self.request.method} {self.request.target.origin}"

    def evidence(self, **more: Any) -> dict[str, Any]:
        return {
            "method": self.request.method,
            "origin": self.request.target.origin,
            "handed_over_bytes": self.traffic.handed_over,
            **more,
        }

    def sentence(self, what: str, means: Meaning) -> str:
        return f"{self.name}: {what} {ONLY_READS if self.reads else MEANS[means]}"


def unanswered(sent: Sent, failure: Unanswered) -> Outcome:
    """No answer: the fault and whether a byte had left decide."""
    proof = proof_of_fault(failure.fault, handed_over=sent.traffic.handed_over > 0)
    return Outcome.ended(
        proof.cause,
        proof.means,
        sent.sentence(str(failure), proof.means),
        error_type=f"http.{failure.fault}",
        evidence=sent.evidence(fault=str(failure.fault)),
    )


def succeeded(sent: Sent, answer: Answer) -> Outcome:
    """A status that the tool declares as its success.

    A body that is cut, or says it is JSON and is not, is still a success: what was received
    is kept and marked (semantics, section 5, `result_unreadable`).
    """
    flaw = answer.cut or _not_what_it_says(answer)
    if not flaw:
        return Outcome.succeeded(result_of(sent, answer))
    return Outcome.ended(
        Cause.RESULT_UNREADABLE,
        Meaning.KNOWN,
        sent.sentence(
            f"answered {answer.status}, but the result is incomplete. {flaw}", Meaning.KNOWN
        ),
        error_type=f"http.{answer.status}",
        result=result_of(sent, answer),
        evidence=sent.evidence(status=answer.status),
    )


def not_succeeded(sent: Sent, answer: Answer, proof: Proof) -> Outcome:
    """Any other status, with what it proves."""
    wait_s = retry_after_s(answer.headers) if answer.status in WAITS_NAMED else None
    return Outcome.ended(
        proof.cause,
        proof.means,
        sent.sentence(f"answered {answer.status}.", proof.means),
        error_type=f"http.{answer.status}",
        retry_after_s=wait_s,
        result=result_of(sent, answer, limit=MAX_ERROR_BODY) if answer.body else None,
        evidence=sent.evidence(status=answer.status, **_unread_wait(answer, wait_s)),
    )


def result_of(sent: Sent, answer: Answer, limit: int | None = None) -> Result:
    """The bytes as received, without the secrets that were used to get them.

    The rest of a cut answer was never received, so its hash is unknown and left empty.
    """
    body = sent.revealed.cut_from(answer.body)
    return Result(
        body=body[:limit],
        media_type=answer.media_type or "application/octet-stream",
        truncated=bool(answer.cut) or (limit is not None and len(body) > limit),
    )


def _not_what_it_says(answer: Answer) -> str:
    says_json = answer.media_type == "application/json" or answer.media_type.endswith("+json")
    if not says_json or not answer.body:
        return ""
    try:
        read_json(answer)
    except NotJson as flaw:
        return str(flaw)
    return ""


def _unread_wait(answer: Answer, wait_s: float | None) -> dict[str, str]:
    """A Retry-After that was ignored is noted (semantics, 4.5)."""
    if wait_s is not None or "retry-after" not in answer.headers:
        return {}
    return {"retry_after_ignored": answer.headers["retry-after"][:100]}
