"""Compactions of a session: where it may be cut, the cut itself, and what an agent lost by it."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from ledger import carry_over, compactions, cut_tokens, faults, ids, lost_lines, sessions
from ledger.api.auth import Key, idempotency_key_of
from ledger.api.epochs import epoch_in
from ledger.api.replays import status_of
from ledger.api.schemas import CompactionCheckIn, CompactionIn
from ledger.api.shapes import instant
from ledger.compactions import Prepared, Wanted
from ledger.cuts import Cut, Place
from ledger.errors import Invalid, NotFound
from ledger.models import Compaction, Session

router = Router(tags=["sessions"])
WRITE, READ = Key("turns:write"), Key("calls:read")
NUMBER_MAX = 2**31 - 1


class Proposed(Schema):
    """A proposed cut, and the version of the transcript that was looked at; all at will."""

    turn: Annotated[int, Field(ge=0, le=NUMBER_MAX)] | None = None
    position: Annotated[int, Field(ge=0, le=NUMBER_MAX)] | None = None
    version: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None


def _session(request: HttpRequest, session_id: str) -> Session:
    principal = request.auth  # type: ignore[attr-defined]
    return sessions.get_session(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        session_id=ids.read("session", session_id),
    )


@router.get("/{session_id}/transcript/cuts", auth=READ)
def cuts(request: HttpRequest, session_id: str, proposed: Query[Proposed]) -> dict[str, Any]:
    """Where a compaction may cut, what must be carried over, and a token good for 120 seconds.

    With `turn` (and `position`), `allowed` is the last cut at or before that place.
    """
    if proposed.position is not None and proposed.turn is None:
        raise Invalid(detail="A position belongs to a turn: give the turn too.")
    prepared = compactions.prepare(
        session=_session(request, session_id),
        proposed=_place(proposed),
        version=proposed.version,
    )
    return _prepared(prepared)


def _place(proposed: Proposed) -> Place | None:
    if proposed.turn is None:
        return None
    return Place(proposed.turn, NUMBER_MAX if proposed.position is None else proposed.position)


def _prepared(prepared: Prepared) -> dict[str, Any]:
    return {
        "session": ids.shown("session", prepared.session.id),
        "version": prepared.looked.version,
        "epoch": prepared.looked.epoch,
        "cuts": [_cut(each) for each in prepared.cuts],
        "allowed": prepared.allowed and _cut(prepared.allowed),
        "carry_over": list(prepared.carried),
        "carry_over_text": carry_over.block(prepared.carried),
        "token": prepared.token,
        "valid_s": cut_tokens.LIVES_S,
        "valid_until": instant(prepared.looked.until),
    }


def _cut(each: Cut) -> dict[str, Any]:
    return {
        "turn": each.place.turn,
        "position": each.place.position,
        "passes": [ids.shown("call", call_id) for call_id in each.passes],
    }


@router.post("/{session_id}/compactions", auth=WRITE, response={201: dict, 200: dict})
def commit(
    request: HttpRequest, response: HttpResponse, session_id: str, body: CompactionIn
) -> tuple[int, dict[str, Any]]:
    """Put a summary in the place of what was said up to a cut; unresolved calls are carried over.

    A transcript that went on since the cuts were read answers 409 `stale_transcript`.
    """
    principal = request.auth  # type: ignore[attr-defined]
    faults.point("before_compaction")
    row, new = compactions.commit(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        session_id=ids.read("session", session_id),
        wanted=Wanted(
            token=body.token,
            cut=Place(body.cut.turn, body.cut.position),
            summary=body.summary,
            key=body.key or idempotency_key_of(request.headers.get("Idempotency-Key")) or "",
            epoch=epoch_in(request, body.epoch),
        ),
    )
    faults.point("after_compaction")
    return status_of(response, new=new), shown(row)


def shown(row: Compaction) -> dict[str, Any]:
    """A compaction: what it stands for, and the calls it carried over."""
    return {
        "id": ids.shown("compaction", row.id),
        "session": ids.shown("session", row.session_id),
        "number": row.number,
        "through": {"turn": row.through_turn, "position": row.through_position},
        "summary": row.summary,
        "summary_sha256": row.summary_sha256,
        "carry_over": row.carry_over,
        "carry_over_text": carry_over.block(row.carry_over),
        "unresolved": [ids.shown("call", each) for each in row.unresolved],
        "version_before": row.version_before,
        "version": row.version,
        "at": instant(row.at),
    }


def _compaction(request: HttpRequest, session_id: str, compaction_id: str) -> Compaction:
    session = _session(request, session_id)
    row = Compaction.objects.filter(
        session=session, id=ids.read("compaction", compaction_id)
    ).first()
    if row is None:
        raise NotFound(noun="compaction")
    return row


@router.get("/{session_id}/compactions/{compaction_id}", auth=READ)
def detail(request: HttpRequest, session_id: str, compaction_id: str) -> dict[str, Any]:
    """One compaction, and the lines that the agent's own transcript was found to miss."""
    row = _compaction(request, session_id, compaction_id)
    return shown(row) | {"missing": lost_lines.to_show_again(row.session_id)}


@router.post("/{session_id}/compactions/{compaction_id}/check", auth=WRITE, response={201: dict})
def check(
    request: HttpRequest, session_id: str, compaction_id: str, body: CompactionCheckIn
) -> tuple[int, dict[str, Any]]:
    """Compare the agent's own transcript with the calls carried over; missing lines come back.

    Of the transcript only its digest is kept. A missing call opens an incident `compaction_loss`.
    """
    row = _compaction(request, session_id, compaction_id)
    found, missing = lost_lines.compare(
        session=row.session, compaction=row, transcript=body.transcript
    )
    return 201, {
        "compaction": ids.shown("compaction", row.id),
        "complete": not found.missing,
        "missing": missing,
        "missing_text": carry_over.block(missing),
        "transcript_sha256": found.transcript_sha256,
        "at": instant(found.at),
    }
