"""Transcripts without a ledger: examined and repaired, nothing stored (transcripts, part d).

A session may be named; then what the ledger knows of its calls is used, and only read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger import ids, known_calls
from ledger.api import masks
from ledger.api import transcript_bodies as bodies
from ledger.api.auth import KeyOrLogin, reader_of
from ledger.api.schemas import RepairIn, ValidationIn
from ledger.errors import NotFound
from ledger.models import Session
from ledger.transcripts import profiles, refusals
from ledger.transcripts.examination import examine
from ledger.transcripts.known import NOTHING_KNOWN
from ledger.transcripts.neutral import Unreadable
from ledger.transcripts.profiles import Profile, UnknownProfile
from ledger.transcripts.repair import Options, Unrepairable, repair

router = Router(tags=["transcripts"])
READ = KeyOrLogin("calls:read")
ALL = "all"


@router.post("/validation", auth=READ)
def validation(request: HttpRequest, body: ValidationIn) -> HttpResponse:
    """Say what is wrong with a transcript, and what providers would answer to it, in their words.

    `format` says how it is written, `profile` which provider is asked: one, or `all`. Up to
    10 MiB, 20,000 entries and 64 levels. Nothing is stored or changed.
    """
    _check_format(body.format)
    wanted = list(profiles.profiles().values()) if body.profile == ALL else [_profile(body.profile)]
    with _answering(body.format):
        found = examine(body.transcript, format=body.format, profiles=wanted)
        return _answer(found.to_json())


@router.post("/repair", auth=READ)
def repaired(request: HttpRequest, body: RepairIn) -> HttpResponse:
    """Mend a transcript for one provider: the copy to send, and a report of every change.

    `profile` may differ from `format`; without one the format's own is taken. With `session` the
    results that the ledger holds for its calls are used, and a login's copy is masked. Nothing is
    stored: neither the transcript nor that it was sent. 422 lists what remains where the provider
    would still refuse.
    """
    _check_format(body.format)
    profile = _profile(body.profile or body.format)
    session = _session(request, body.session)
    ledger = known_calls.known_of(session) if session else NOTHING_KNOWN
    with _answering(body.format, profile.name):
        mended = repair(
            body.transcript, format=body.format, profile=profile, ledger=ledger,
            options=_options(body),
        )  # fmt: skip
    copy = {"transcript": mended.body, "report": mended.report.to_json()}
    if session is not None:
        copy = masks.about_session(request.auth, session, copy)  # type: ignore[attr-defined]
    return _answer(copy)


def _options(body: RepairIn) -> Options:
    return Options(
        frontier=body.frontier,
        unanswered=body.unanswered,
        failed_reply=body.failed_reply,
        late_results=body.late_results,
        offered_tools=None if body.offered_tools is None else frozenset(body.offered_tools),
        cap_bytes=body.cap,
        notices=frozenset(body.notices),
    )


def _check_format(name: str) -> None:
    try:
        profiles.shape(name)
    except UnknownProfile as refusal:
        raise refusals.unknown(refusal, "format") from None


def _profile(name: str) -> Profile:
    try:
        return profiles.profile(name)
    except UnknownProfile as refusal:
        raise refusals.unknown(refusal, "profile") from None


def _session(request: HttpRequest, session_id: str | None) -> Session | None:
    """The session whose calls are used, if the caller may read it. Raises NotFound."""
    if session_id is None:
        return None
    reader = reader_of(request.auth)  # type: ignore[attr-defined]
    wanted = ids.read("session", session_id)
    found = Session.objects.filter(workspace=reader.workspace_id, id=wanted)
    if reader.agent_id is not None:
        found = found.filter(agent=reader.agent_id)
    session = found.first()
    if session is None:
        raise NotFound(noun="session")
    return session


@contextmanager
def _answering(format: str, profile: str = "") -> Iterator[None]:
    """Turn what the pure steps raise into refusals; a fault of ours tells its place alone.

    An exception may carry a text of the transcript, and an unhandled one is logged whole.
    """
    try:
        yield
    except Unreadable as refusal:
        raise refusals.unreadable(refusal, format, within="/transcript") from None
    except Unrepairable as refusal:
        raise refusals.unrepairable(refusal, profile) from None
    except Exception as fault:
        raise bodies.Faulty(bodies.place_of(fault)) from None


def _answer(value: Any) -> HttpResponse:
    body = orjson.dumps(value)
    return HttpResponse(
        body, content_type="application/json", headers={"Cache-Control": "no-store"}
    )
