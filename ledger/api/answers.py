"""Answers of the hot verbs: record or fetch, then wait if asked to. No framework here."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ledger import faults, foreign, ids
from ledger.api import intake, shapes
from ledger.api.auth import reader_of
from ledger.calls import Fetchable
from ledger.errors import LedgerError
from ledger.hub import hub
from ledger.keys import Principal
from ledger.submits import Recorded, Submit
from ledger.vocabulary import CallState


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a JSON value (None for an empty body) and headers."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


async def submitted(
    submits: list[Submit], *, is_batch: bool, principal: Principal, wait_s: float
) -> Answer:
    """Record, answer after the commit, and with the settled calls if they come within `wait_s`."""
    faults.point("before_record", submits[0].call_id, submits[0].tool)
    if len(submits) == 1 and not is_batch:
        return await _one(submits[0], principal, wait_s)
    futures = [intake.submits.ask(each) for each in submits]
    answers = await asyncio.gather(*futures, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, LedgerError):
            raise answer
    bodies = await asyncio.gather(
        *(_item(answer, principal, wait_s) for answer in answers)  # type: ignore[arg-type]
    )
    fresh = any(isinstance(a, Recorded) and not a.replayed for a in answers)
    refused = all(isinstance(a, LedgerError) for a in answers)
    return Answer(422 if refused else 201 if fresh else 200, {"items": bodies})


async def _one(submit: Submit, principal: Principal, wait_s: float) -> Answer:
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_s
    # Waiting begins before the call can be settled, so the first news is not missed.
    async with hub().waiter(submit.call_id) as woken:
        answer = await intake.submits.ask(submit)
        faults.point("before_answer", answer.call_id, submit.tool)
        if wait_s > 0 and not answer.replayed and answer.state is CallState.SCHEDULED:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), timeout=wait_s)
    fetched = await fetched_after(
        principal, answer.call_id, until - loop.time(), was_told=woken.is_set()
    )
    intake.note_fetch(fetched, principal)
    headers = {"Location": fetched.call.get_absolute_url(), "ETag": shapes.etag_of(fetched.call)}
    headers |= intake.replay_headers([answer])
    body = shapes.call(fetched, replayed=answer.replayed)
    return Answer(200 if answer.replayed else 201, body, headers)


async def _item(
    answer: Recorded | LedgerError, principal: Principal, wait_s: float
) -> dict[str, Any]:
    if isinstance(answer, LedgerError):
        foreign.note(answer, principal)
        return {"status": answer.http, "code": answer.code, "detail": str(answer)}
    fetched = await fetched_after(principal, answer.call_id, wait_s)
    intake.note_fetch(fetched, principal)
    return shapes.call(fetched, replayed=answer.replayed)


async def fetched_call(
    principal: Principal, shown_id: str, *, wait_s: float, if_none_match: str
) -> Answer:
    """A call, when it is settled or a person's turn, or as it stands after `wait_s`; else 304."""
    call_id = ids.read("call", shown_id)
    fetched = await fetched_after(principal, call_id, wait_s)
    etag = shapes.etag_of(fetched.call)
    if fetched.call.is_settled:
        faults.point("before_delivery", fetched.call.id, fetched.call.tool)
    if matches(if_none_match, etag):
        return Answer(304, None, {"ETag": etag})
    intake.note_fetch(fetched, principal)
    return Answer(200, shapes.call(fetched), {"ETag": etag})


def matches(if_none_match: str, etag: str) -> bool:
    """The weak comparison of RFC 9110, section 13.1.2: any of a list, or whatever there is."""
    known = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
    return "*" in known or etag.removeprefix("W/") in known


async def fetched_after(
    principal: Principal, call_id: UUID, wait_s: float, *, was_told: bool = False
) -> Fetchable:
    """Read the call; while it is open, wait for news of it, and read again.

    The news that its turn was interrupted ends the wait: what is settled then is given at once
    (R100). `was_told` says that news came already.
    """
    wanted = (reader_of(principal), call_id)
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_s
    fetched = await intake.fetches.ask(wanted)
    if wait_s <= 0 or _is_at_an_end(fetched) or (was_told and await _is_interrupted(fetched)):
        return fetched
    async with hub().waiter(call_id) as woken:
        while True:
            fetched = await intake.fetches.ask(wanted)
            left = until - loop.time()
            if _is_at_an_end(fetched) or left <= 0 or (was_told and await _is_interrupted(fetched)):
                return fetched
            try:
                await asyncio.wait_for(woken.wait(), timeout=left)
            except TimeoutError:
                return await intake.fetches.ask(wanted)
            woken.clear()
            was_told = True


def _is_at_an_end(fetched: Fetchable) -> bool:
    return fetched.call.is_settled or shapes.is_persons_turn(fetched.call)


async def _is_interrupted(fetched: Fetchable) -> bool:
    """Whether the call's turn was interrupted; asked only where there is news of an open call."""
    turn_id = fetched.call.turn_id
    return turn_id is not None and await intake.interruptions_of.ask(turn_id)
