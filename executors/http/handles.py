"""Long work over HTTP: taking its handle, asking after it, asking to end it.

Nothing here proves anything about the work unless the work itself is answered for: a poll
that fails, is refused, or is told to wait says nothing about what it asks after.
"""

import json
from contextlib import suppress
from dataclasses import replace

from executors.contract import Context, FenceLost, Handle, Outcome
from executors.http.client import Answer
from executors.http.conditions import MISSING, NotJson, look_up, read_json
from executors.http.config import Job, Poll
from executors.http.outcomes import Sent, not_succeeded, result_of, succeeded
from executors.http.targets import UnfitUrl, read_redirect
from executors.network import Proof, proof_of_status, retry_after_s
from ledger.vocabulary import Cause, Meaning

UNKNOWN_HANDLE = frozenset({404, 410})
ASK_AGAIN = frozenset({408, 425, 429})
"""Refusals of a poll that pass; so does every 5xx."""


def taken(sent: Sent, answer: Answer, job: Job, context: Context) -> Outcome:
    """The outside accepted the work: commit its handle before anything else (R72)."""
    value = _handle_value(sent, answer, job)
    if not value:
        return Outcome.ended(
            Cause.VANISHED,
            Meaning.UNKNOWN,
            f"{sent.name}: answered {answer.status}, but named no handle by which the work is "
            f"found again. {answer.cut or 'Look for it at the provider and attach its handle.'}",
            error_type="http.handle_missing",
            result=result_of(sent, answer),
            evidence=sent.evidence(status=answer.status),
        )
    handle = Handle(
        value=value,
        kind="http",
        endpoint=sent.request.target.origin,
        poll_after_s=_hint(answer, job.poll),
        expires_in_s=job.expires_in_s,
    )
    # If another attempt holds the call by now, the handle is still the best evidence there
    # is, and the runner files what an attempt without a fence reports.
    with suppress(FenceLost):
        context.store_handle(handle)
    return Outcome.parked(handle)


def polled(
    sent: Sent, answer: Answer, poll: Poll, handle: Handle, filling: dict[str, object]
) -> Outcome:
    """What a poll was answered: done, failed, unknown to the outside, or still going on."""
    if answer.status in UNKNOWN_HANDLE:
        return vanished(sent, answer)
    if poll.failed is not None and poll.failed.is_met(answer, filling):
        return _failed(sent, answer)
    if poll.done.is_met(answer, filling):
        return _done(sent, answer, poll)
    if answer.status < 300:
        return still_going(handle, poll_after_s=_hint(answer, poll))
    return _unanswered_poll(sent, answer, handle)


def vanished(sent: Sent, answer: Answer) -> Outcome:
    """The outside does not know the handle; that proves nothing of the work (semantics, 11.3)."""
    return Outcome.ended(
        Cause.VANISHED,
        Meaning.UNKNOWN,
        f"{sent.name}: answered {answer.status}; the handle is not known there any more. "
        "What became of the work is not known; ask the provider.",
        error_type=f"http.{answer.status}",
        evidence=sent.evidence(status=answer.status, reason="handle_lost"),
    )


def still_going(handle: Handle, message: str = "", poll_after_s: float | None = None) -> Outcome:
    """Ask again later; `poll_after_s` is the outside's own hint, not yet clamped."""
    return replace(Outcome.parked(replace(handle, poll_after_s=poll_after_s)), message=message)


def _handle_value(sent: Sent, answer: Answer, job: Job) -> str:
    if job.handle_header is not None:
        location = answer.headers.get(job.handle_header.lower(), "")
        try:
            target = read_redirect(sent.request.target, location) if location else None
        except UnfitUrl:
            return ""
        return target.origin + target.path if target else ""
    try:
        found = look_up(read_json(answer), job.handle or "")
    except NotJson:
        return ""
    if isinstance(found, bool) or not isinstance(found, (str, int)):
        return ""
    return str(found)


def _hint(answer: Answer, poll: Poll) -> float | None:
    hint = retry_after_s(answer.headers)
    return poll.after_s if hint is None else hint


def _failed(sent: Sent, answer: Answer) -> Outcome:
    return Outcome.ended(
        Cause.TOOL_ERROR,
        Meaning.KNOWN,
        f"{sent.name}: the outside says that the work ended with an error. Its answer is kept.",
        error_type="http.work_failed",
        result=result_of(sent, answer),
        evidence=sent.evidence(status=answer.status),
    )


def _done(sent: Sent, answer: Answer, poll: Poll) -> Outcome:
    if poll.result is None:
        return succeeded(sent, answer)
    try:
        found = look_up(read_json(answer), poll.result)
    except NotJson as unread:
        return succeeded(sent, replace(answer, cut=str(unread)))
    if found is MISSING:
        return succeeded(sent, replace(answer, cut="It has no result where one is expected."))
    body = json.dumps(found, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return succeeded(sent, replace(answer, body=body))


def _unanswered_poll(sent: Sent, answer: Answer, handle: Handle) -> Outcome:
    message = f"The poll was answered {answer.status}, which says nothing about the work."
    if answer.status >= 500 or answer.status in ASK_AGAIN:
        return still_going(handle, message, retry_after_s(answer.headers))
    # A refused poll is refused itself; the work it asks after may go on.
    cause = proof_of_status(answer.status, later_attempt=False).cause
    return not_succeeded(sent, answer, Proof(cause, Meaning.UNKNOWN))
