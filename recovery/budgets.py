"""Spending and granting repeats: no two connections may overdraw a scope (semantics, section 9).

A repeat is reserved in all its scopes when it is scheduled, in the transaction that schedules
it. Locks: the call's row, then one advisory lock for each shared scope, from narrow to wide;
nothing else is locked after them. They are taken for repeats only, never for a first attempt.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from ledger.models import ToolCall
from ledger.vocabulary import BudgetScope
from recovery import standings
from recovery.models import Refusal, Repeat
from recovery.standings import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What allows a repeat: a rule and its grounds; `person` where a resolution repeats."""

    rule: str
    grounds: str
    wait_s: float = 0.0
    person: Any = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The scope that has no room for one repeat more, and the sentence that says so."""

    scope: BudgetScope
    sentence: str


def reserve(call: ToolCall, allowed: Allowed) -> Refused | None:
    """Reserve the next attempt of a call in every scope; None, or the scope that refuses it.

    Runs in the caller's transaction, under the call's lock. A repeat that was reserved before
    and never claimed is the same one. A person's repeat passes what is spent, and counts.
    """
    number = call.attempts_used + 1
    if Repeat.objects.filter(call=call, number=number).exists():
        return None
    shared = _locked(call)
    if allowed.person is None:
        for scope, standing in shared.items():
            if sentence := standing.why_refused(allowed.wait_s):
                return Refused(scope, sentence)
    _write(call, number, allowed, shared)
    return None


def _locked(call: ToolCall) -> dict[BudgetScope, Standing]:
    """How the shared scopes stand, while nobody else can spend from them."""
    for scope, key in standings.keys_of(call).items():
        lock(scope, f"{call.workspace_id.hex}:{key}")
    return standings.of_call(call)


def lock(scope: BudgetScope, name: str) -> None:
    """Hold a scope until the transaction ends. From narrow to wide, or two could wait in a ring."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"budget:{scope}:{name}"]
        )


def _write(
    call: ToolCall, number: int, allowed: Allowed, shared: dict[BudgetScope, Standing]
) -> None:
    left = {scope: max(0, standing.left - 1) for scope, standing in shared.items()}
    person = allowed.person
    # What a person decides is one attempt more and no other, whatever the policy had left.
    mine = 0 if person else call.attempts_allowed - number
    Repeat.objects.create(
        workspace_id=call.workspace_id,
        call=call,
        session_id=call.session_id,
        turn_id=call.turn_id,
        tool=call.tool,
        number=number,
        rule=allowed.rule,
        cause=call.cause or "",
        grounds=allowed.grounds,
        wait_s=allowed.wait_s,
        call_left=mine,
        turn_left=left.get(BudgetScope.TURN),
        session_left=left.get(BudgetScope.SESSION),
        tool_left=left[BudgetScope.TOOL],
        granted_by=person,
        granted_by_name=person.get_username() if person else "",
    )


def refuse(call: ToolCall, scope: BudgetScope, grounds: str) -> None:
    """Write on the account that a spent scope refused a repeat."""
    Refusal.objects.create(
        workspace_id=call.workspace_id, call=call, tool=call.tool, scope=scope, grounds=grounds
    )
