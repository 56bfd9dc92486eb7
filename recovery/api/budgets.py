"""Budgets: how each scope stands, why each attempt was allowed, and what people grant (R49)."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from ledger import calls, clock, ids
from ledger.api.auth import KeyOrLogin, Login, idempotency_key_of, reader_of
from ledger.api.pages import page
from ledger.api.replays import status_of
from ledger.api.schemas import PageOut, Strict, shown
from ledger.api.shapes import instant
from ledger.calls import Reader
from ledger.errors import Invalid, NotFound
from ledger.models import Session, Tool, ToolCall, Turn
from ledger.permissions import Person
from ledger.strictjson import is_identifier
from ledger.vocabulary import BudgetScope
from recovery import accounts, grants, standings
from recovery.models import Grant, Refusal
from recovery.standings import Standing

router = Router(tags=["budgets"])
of_calls = Router(tags=["budgets"])
READ, GRANT = KeyOrLogin("calls:read"), Login("admin")


class GrantIn(Strict):
    """What is added to one scope: attempts, or for a turn seconds too, and why.

    `confirm` names tool (of a turn or session: the scope) and count where the scope is spent.
    """

    model_config = shown(
        scope="tool", id="sandbox.lookup", attempts=20, grounds="The shop is back since noon."
    )

    scope: Literal["call", "turn", "session", "tool"]
    id: Annotated[str, Field(min_length=1, max_length=128)]
    attempts: Annotated[int, Field(ge=0, le=1000)] = 0
    seconds: Annotated[int, Field(ge=0, le=3600)] = 0
    grounds: Annotated[str, Field(min_length=1, max_length=2000)]
    confirm: Annotated[str, Field(max_length=300)] = ""


def _named(scope: BudgetScope, key: str) -> str:
    return key if scope is BudgetScope.TOOL else ids.shown(str(scope), ids.read(str(scope), key))


def standing_shape(row: Standing) -> dict[str, Any]:
    """One scope: its repeats, its seconds where it has a budget of them, and why it refuses."""
    seconds = None
    if row.seconds_limit is not None:
        spent_s = round(row.seconds_spent, 3)
        seconds = {"limit": row.seconds_limit, "spent": spent_s,
                   "left": round(row.seconds_left or 0.0, 3)}  # fmt: skip
    return {
        "scope": row.scope,
        "id": _named(row.scope, row.key),
        "repeats": {"limit": row.limit, "granted": row.granted, "spent": row.spent,
                    "left": row.left},
        "seconds": seconds,
        "window_s": row.window_s,
        "share_used": round(row.share, 3),
        "spent_in_about_s": row.spent_in_about_s,
        "is_spent": bool(row.why_refused()),
        "why": row.why_refused() or None,
    }  # fmt: skip


@router.get("", auth=READ, response=PageOut)
def index(
    request: HttpRequest,
    scope: str = "",
    id: str = "",
    above: Annotated[float, Field(ge=0, le=1)] = 0.0,
) -> dict[str, Any]:
    """How one scope stands; without a scope those that have spent anything, the fullest first.

    `above` keeps those of which at least this share is used, such as 0.5. The list is a person's;
    an agent asks for its own calls, turns and sessions, and for tools.
    """
    reader = reader_of(request.auth)  # type: ignore[attr-defined]
    if scope:
        found = [_standing(reader, scope, id)]
    elif reader.agent_id is None:
        found = standings.listed(reader.workspace_id, above=above)
    else:
        raise Invalid(detail="Name a scope and its id: the list of all is shown to people only.")
    return {"items": [standing_shape(each) for each in found], "next_cursor": None}


def _standing(reader: Reader, word: str, key: str) -> Standing:
    if word not in set(BudgetScope):
        raise Invalid(detail=f"scope is one of {', '.join(BudgetScope)}.")
    scope = BudgetScope(word)
    if scope is BudgetScope.CALL:
        return standings.own(calls.get(reader=reader, call_id=ids.read("call", key)))
    if scope is BudgetScope.TOOL:
        tools = Tool.objects.filter(workspace=reader.workspace_id)
        if not is_identifier(key) or not tools.filter(name=key).exists():
            raise NotFound(noun="tool")
        return standings.read(scope, reader.workspace_id, key)
    return standings.read(scope, reader.workspace_id, _id_of(reader, scope, key).hex)


def _id_of(reader: Reader, scope: BudgetScope, key: str) -> Any:
    """The id of a turn or session that this reader may see. Raises NotFound."""
    models: dict[BudgetScope, tuple[Any, str]] = {
        BudgetScope.SESSION: (Session, "agent"),
        BudgetScope.TURN: (Turn, "session__agent"),
    }
    model, owner = models[scope]
    rows = model.objects.filter(workspace=reader.workspace_id, id=ids.read(str(scope), key))
    if reader.agent_id is not None:
        rows = rows.filter(**{owner: reader.agent_id})
    found = rows.values_list("id", flat=True).first()
    if found is None:
        raise NotFound(noun=str(scope))
    return found


@of_calls.get("/{call_id}/budget", auth=READ)
def of_call(request: HttpRequest, call_id: str) -> dict[str, Any]:
    """A call's four scopes, its account attempt by attempt, what was refused and granted."""
    reader = reader_of(request.auth)  # type: ignore[attr-defined]
    call = calls.get(reader=reader, call_id=ids.read("call", call_id))
    scopes = [standings.own(call), *standings.of_call(call).values()]
    now = clock.now()
    until = call.schedule_to_close_at
    return {
        "call": ids.shown("call", call.id),
        "seconds_left": max(0.0, round((until - now).total_seconds(), 3)) if until else None,
        "scopes": [standing_shape(each) for each in scopes],
        "account": [_line_shape(each) for each in accounts.lines_of(call, now=now)],
        "refused": [
            {"scope": each.scope, "grounds": each.grounds, "at": instant(each.at)}
            for each in Refusal.objects.filter(call=call).order_by("at")
        ],
        "granted": [grant_shape(each) for each in _grants_to(call)],
    }


def _line_shape(line: accounts.Line) -> dict[str, Any]:
    return asdict(line) | {
        "at": instant(line.at),
        "cause": line.cause or None,
        "granted_by": line.granted_by or None,
        "spent_s": round(line.spent_s, 3),
    }


def _grants_to(call: ToolCall) -> list[Grant]:
    """The grants to any scope that the call lies in, in order."""
    rows = Grant.objects.filter(workspace=call.workspace_id)
    found = rows.filter(call=call) | rows.filter(tool=call.tool, scope=BudgetScope.TOOL)
    for noun in ("turn", "session"):
        if (id_ := getattr(call, f"{noun}_id")) is not None:
            found = found | rows.filter(**{noun: id_})
    return list(found.order_by("-id")[:200])


def grant_shape(row: Grant) -> dict[str, Any]:
    """A grant: to what, how much, by whom, why, and until when it counts."""
    key = row.tool or (row.call_id or row.turn_id or row.session_id).hex  # type: ignore[union-attr]
    return {
        "id": ids.shown("grant", row.id),
        "scope": row.scope,
        "of": _named(row.scope, key),
        "attempts": row.attempts,
        "seconds": row.seconds,
        "by": row.person_name,
        "grounds": row.grounds,
        "at": instant(row.at),
        "until": instant(row.until),
    }


@router.get("/grants", auth=Login(), response=PageOut)
def granted(request: HttpRequest, limit: int = 50, cursor: str = "") -> dict[str, Any]:
    """Every grant of the workspace, newest first."""
    person: Person = request.auth  # type: ignore[attr-defined]
    rows = Grant.objects.filter(workspace=person.workspace_id)
    found, next_cursor = page(rows, filters={"of": "grants"}, limit=limit, cursor=cursor)
    return {"items": [grant_shape(row) for row in found], "next_cursor": next_cursor}


@router.post("/grants", auth=GRANT, response={201: dict, 200: dict})
def grant(
    request: HttpRequest, response: HttpResponse, body: GrantIn
) -> tuple[int, dict[str, Any]]:
    """Add to one budget. Refused while a wider one is spent, which it names.

    More for a budget that is spent itself is refused until `confirm` says to what and how much.
    It makes no attempt by itself; `Idempotency-Key` makes it once.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    made, new = grants.grant(
        workspace_id=person.workspace_id,
        wanted=grants.Wanted(
            scope=BudgetScope(body.scope),
            key=body.id,
            attempts=body.attempts,
            seconds=float(body.seconds),
            grounds=body.grounds,
            confirm=body.confirm,
        ),
        person=get_user_model().objects.get(pk=person.id),
        key=idempotency_key_of(request.headers.get("Idempotency-Key")) or "",
    )
    return status_of(response, new=new), grant_shape(made)
