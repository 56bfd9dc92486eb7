"""Grants: what a person adds to a retry budget, with grounds (R49; semantics, section 9).

A grant to a narrow scope is refused while a wider one is spent: it could not be used. To a scope
that is spent itself it is confirmed by typing. It makes no attempt by itself. Locks: the call,
then appends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from ledger import ids, journal
from ledger.errors import (
    AlreadySettled,
    BudgetSpent,
    Invalid,
    KeyReused,
    NotFound,
    refuse_unconfirmed,
)
from ledger.journal import Move
from ledger.models import Session, Tool, ToolCall, Turn
from ledger.models.fields import ClockTimestamp
from ledger.scopes import CALL_GRANTED_MAX, LIMITS
from ledger.strictjson import is_identifier
from ledger.transactions import repeatable
from ledger.vocabulary import Actor, BudgetScope
from recovery import standings
from recovery.models import Grant
from recovery.refusals import GrantUnconfirmed
from recovery.standings import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person wants to grant: to which scope, how many attempts and seconds, and why.

    `key` is the id of a call, turn or session as the API shows it, or the name of a tool;
    `confirm` is what was typed to grant to a spent budget.
    """

    scope: BudgetScope
    key: str
    attempts: int = 0
    seconds: float = 0.0
    grounds: str
    confirm: str = ""

    def check(self) -> None:
        """Raise Invalid for a grant of nothing, of too much, or of time where time is not kept."""
        if not self.grounds.strip():
            raise Invalid(detail="Every grant needs grounds: say why in one sentence.")
        shared = LIMITS.get(self.scope)
        attempts_max = shared.granted_max if shared else CALL_GRANTED_MAX
        seconds_max = shared.granted_seconds_max if shared else 0.0
        if self.seconds and not seconds_max:
            raise Invalid(detail=f"A {self.scope} has no budget of seconds. Grant attempts.")
        if not (0 <= self.attempts <= attempts_max and 0 <= self.seconds <= seconds_max):
            most = f" and {seconds_max:g} seconds" if seconds_max else ""
            raise Invalid(detail=f"One grant to a {self.scope} adds at most {attempts_max} "
                          f"attempts{most}.")  # fmt: skip
        if not self.attempts and not self.seconds:
            raise Invalid(detail="A grant adds at least one attempt or one second.")


@repeatable
def grant(*, workspace_id: UUID, wanted: Wanted, person: Any, key: str = "") -> tuple[Grant, bool]:
    """Add to a budget and return the grant; False if this person's `key` had made it before.

    Raises NotFound, AlreadySettled for a call that is closed, BudgetSpent while a wider scope is
    spent, GrantUnconfirmed for a spent scope unless `confirm` names it and how much is granted,
    KeyReused, Invalid.
    """
    wanted.check()
    target = _target(workspace_id, wanted)
    known = Grant.objects.filter(person=person, key=key).first() if key else None
    if known is not None:
        return _the_same(known, workspace_id, wanted, target), False
    _refuse_when_settled(target.get("call"))
    _refuse_under_a_spent_one(workspace_id, wanted, target)
    _refuse_unconfirmed(workspace_id, wanted, target)
    made = Grant.objects.create(
        workspace_id=workspace_id,
        scope=wanted.scope,
        **target,
        attempts=wanted.attempts,
        seconds=wanted.seconds,
        person=person,
        person_name=person.get_username(),
        grounds=wanted.grounds,
        key=key,
        until=_until(wanted.scope),
    )
    if wanted.scope is BudgetScope.CALL:
        _lengthen(target["call"], made)
    made.refresh_from_db()
    return made, True


def _until(scope: BudgetScope) -> Any:
    """What is added to a rolling window is gone with it."""
    window_s = LIMITS[scope].window_s if scope in LIMITS else None
    return None if window_s is None else ClockTimestamp() + timedelta(seconds=window_s)


def _target(workspace_id: UUID, wanted: Wanted) -> dict[str, Any]:
    """The row that a scope's key names, as the grant's column of it. Raises NotFound."""
    if wanted.scope is BudgetScope.TOOL:
        tools = Tool.objects.filter(workspace=workspace_id)
        if not is_identifier(wanted.key) or not tools.filter(name=wanted.key).exists():
            raise NotFound(noun="tool")
        return {"tool": wanted.key}
    noun = str(wanted.scope)
    models: Mapping[str, Any] = {"call": ToolCall, "turn": Turn, "session": Session}
    rows = models[noun].objects.filter(workspace=workspace_id, id=ids.read(noun, wanted.key))
    found = (rows.select_for_update(of=("self",)) if noun == "call" else rows).first()
    if found is None:
        raise NotFound(noun=noun)
    return {noun: found}


def _the_same(known: Grant, workspace_id: UUID, wanted: Wanted, target: Mapping[str, Any]) -> Grant:
    """The grant that this key made, if it is the same one. Raises KeyReused."""
    made = (known.workspace_id, known.scope, known.attempts, known.seconds, known.grounds)
    asked = (workspace_id, wanted.scope, wanted.attempts, wanted.seconds, wanted.grounds)
    [(column, row)] = target.items()
    if made != asked or getattr(known, column) != row:
        raise KeyReused(earlier="another grant")
    return known


def _refuse_when_settled(call: ToolCall | None) -> None:
    if call is not None and call.is_settled:
        raise AlreadySettled(state=call.state, current={"state": call.state, "effect": call.effect})


def _refuse_under_a_spent_one(
    workspace_id: UUID, wanted: Wanted, target: Mapping[str, Any]
) -> None:
    for standing in _wider(workspace_id, target):
        if sentence := standing.why_refused():
            raise BudgetSpent(sentence=sentence, granted=wanted.scope, scope=standing.scope)


def _refuse_unconfirmed(workspace_id: UUID, wanted: Wanted, target: Mapping[str, Any]) -> None:
    """Raise GrantUnconfirmed for more of what is spent: tool and count, or scope and count."""
    spent = _own(workspace_id, wanted.scope, target).why_refused()
    call = target.get("call")
    named = call.tool if call else target.get("tool", wanted.scope)
    confirm = f"{named} {wanted.attempts or round(wanted.seconds)}" if spent else ""
    refuse_unconfirmed(confirm, wanted.confirm, GrantUnconfirmed, spent=spent)


def _own(workspace_id: UUID, scope: BudgetScope, target: Mapping[str, Any]) -> Standing:
    """How the scope stands that is granted to."""
    if scope is BudgetScope.CALL:
        return standings.own(target["call"])
    [row] = target.values()
    return standings.read(scope, workspace_id, row if scope is BudgetScope.TOOL else row.id.hex)


def _wider(workspace_id: UUID, target: Mapping[str, Any]) -> list[Standing]:
    """The scopes in which all of this one lies: a turn is of one session, and of many tools."""
    if "call" in target:
        return list(standings.of_call(target["call"]).values())
    if "turn" in target:
        session = target["turn"].session_id.hex
        return [standings.read(BudgetScope.SESSION, workspace_id, session)]
    return []


def _lengthen(call: ToolCall, made: Grant) -> None:
    """Allow a call more attempts, by an event of the person."""
    journal.append(
        [
            Move(
                call=call,
                kind="budget_granted",
                by=Actor.OPERATOR,
                by_id=str(made.person_id),
                facts={"grounds": made.grounds, "attempts": made.attempts, "grant": made.id.hex},
                columns={"attempts_allowed": call.attempts_allowed + made.attempts},
            )
        ]
    )
