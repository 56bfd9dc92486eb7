"""The filters on calls: on every label, on names and moments, on who works on them (console, 2).

They stand here and not in the ledger because some ask what only recovery keeps: who has taken an
incident, what a person's decision rests on, which bulk run a call was in. `path` is the way from a
row to its call: empty from the call itself, `call__` from what is about one.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import Q

from ledger import clock, filters, ids, traces
from ledger.errors import NotFound
from ledger.filters import Keep, an_id, one_of, words
from ledger.models import Turn
from ledger.models.calls import NO_OUTCOME
from ledger.vocabulary import OPEN, CallState, Cause, DeliveryKind, Effect, RecoveryClass
from recovery import label_queries, takings
from recovery.health import late_before
from recovery.label_queries import BASES, NOTHING_YET
from recovery.models import BulkRow, Taking

SHOWN = (NOTHING_YET, *map(str, DeliveryKind), "correction")
NOBODY, SOMEBODY = NOT_NAMES = ("nobody", "somebody")
DAYS_MAX = 366


def of_call(path: str) -> dict[str, Keep]:
    """State, effect, class, tool, shown to the model, basis, cause, agent, session, policy."""
    return {
        "state": words("state", f"{path}state", CallState),
        "effect": words("effect", f"{path}effect", Effect),
        "class": words("class", f"{path}recovery_class", RecoveryClass),
        "tool": filters.tools(f"{path}tool"),
        "saw": one_of("saw", SHOWN, partial(label_queries.was_shown, path)),
        "read": one_of("read", ("yes", "not_yet"), lambda word:
                       label_queries.was_read(path, word == "yes")),
        "basis": one_of("basis", BASES, partial(label_queries.rests_on, path)),
        "cause": words("cause", f"{path}cause", Cause),
        "agent": filters.named("agent", f"{path}agent__name"),
        "session": lambda text: Q(**{f"{path}session": an_id("session", text)}),
        "policy": lambda text:
            Q(**{f"{path}policy__number": filters.number("policy", text, 10**9 - 1)}),
    }  # fmt: skip


def taken(row: str) -> Keep:
    """By whom its incident is taken now; `row` is the way from a taking to the row of the list."""

    def keep(text: str) -> Q:
        own = Taking.objects.filter(takings.in_force(), incident__closed_at=None)
        name = filters.a_text("taken", text)
        found = own.filter(by_name=name) if name not in NOT_NAMES else own
        kept = Q(id__in=found.exclude(**{row: None}).values(row))
        return ~kept if name == NOBODY else kept

    return keep


def _unsettled(text: str) -> Q:
    return Q(settled_at__isnull=True) & NO_OUTCOME


def _overdue(text: str) -> Q:
    return Q(settled_at__isnull=True, due_at__lt=late_before(clock.now()))


def _named(text: str) -> Q:
    """By any name that somebody may have of a call."""
    name = filters.a_text("q", text)
    wanted = Q(tool_call_id=name) | Q(idempotency_key=name) | Q(tool__icontains=name)
    wanted |= Q(traceparent__startswith=traces.beginning(name))
    try:
        return wanted | Q(id=ids.read("call", name))
    except NotFound:
        return wanted


def bulk(row: str) -> Keep:
    """What a bulk run was about; `row` is the column of its rows that names the list's."""
    return lambda text: Q(id__in=BulkRow.objects.filter(run=an_id("bulk_run", text)).values(row))


def _repeats(text: str) -> Q:
    """Calls of the last so many days that were answered from an earlier one."""
    since = clock.now() - timedelta(days=filters.number("repeats", text, DAYS_MAX))
    return Q(twin_of__isnull=False, recorded_at__gte=since)


def _turn(text: str) -> Q:
    # Calls are found by their session; a turn has no index of its own.
    turn = Turn.objects.filter(id=an_id("turn", text))
    return Q(turn__in=turn.values("id"), session__in=turn.values("session"))


CALLS: dict[str, Keep] = {
    **of_call(""),
    **filters.between("recorded_at"),
    "taken": taken("incident__call"),
    "no_settled_result": _unsettled,
    "overdue": _overdue,
    "q": _named,
    "bulk": bulk("call"),
    "repeats": _repeats,
    # These two are asked by the API alone.
    "turn": _turn,
    "recovery_class": words("recovery_class", "recovery_class", RecoveryClass),
}
"""What can be asked of the list of calls."""

OPEN_ONLY = ("no_settled_result", "overdue")
INDEXED = {"session", "turn", "bulk", "repeats"}


def asks_for_open_ones(given: Mapping[str, str]) -> bool:
    """Whether the filters keep open calls alone, which come by their own index."""
    is_open = "state" in given and OPEN.issuperset(given["state"].split(","))
    return is_open or any(flag in given for flag in OPEN_ONLY)


def have_index(given: Mapping[str, str]) -> bool:
    """Whether the filters find their calls without a look at all of them."""
    is_taken = given.get("taken", NOBODY) != NOBODY
    return not given or is_taken or bool(INDEXED & given.keys()) or asks_for_open_ones(given)


def among(own: Any, given: Mapping[str, str]) -> Any:
    """The calls in which the filters look, before they keep anything."""
    rows = filters.dated(own, given)
    return rows.open() if asks_for_open_ones(given) else rows
