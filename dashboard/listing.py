"""The list of calls: filters from the address, cursor pages, a count, and what excludes most.

No page scans all calls there ever were. Open ones and those of a session come by their own index;
every other filter looks through the newest WINDOW calls before the cursor, and says so when older
ones were not looked at: the next page goes on from there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q

from dashboard.labels import EFFECTS, STATES
from dashboard.overview import EXACT_UP_TO, WINDOW, Figure, late_before
from dashboard.standing import Standing, of_many
from ledger import clock, ids
from ledger.api.pages import cursor_of, place_of, words_of
from ledger.errors import Invalid, NotFound
from ledger.models import ToolCall
from ledger.models.calls import ToolCallQuerySet
from ledger.permissions import Person
from ledger.vocabulary import SETTLED, CallState, Cause, Effect, RecoveryClass
from recovery.models import BulkRow

PAGE = 50
TEXT_MAX = 300

Calls = ToolCallQuerySet
Keep = Callable[[str], Q]


def _words(name: str, column: str, words: Any) -> Keep:
    return lambda text: Q(**{f"{column}__in": words_of(name, words, text)})


def _exactly(column: str) -> Keep:
    return lambda text: Q(**{column: text})


def _session(text: str) -> Q:
    return Q(session=_id("session", text))


def _id(noun: str, text: str) -> UUID:
    try:
        return ids.read(noun, text)
    except NotFound as error:
        raise Invalid(detail=f"{text[:40]!r} is no id of a {noun.replace('_', ' ')}.") from error


def _policy(text: str) -> Q:
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(detail="policy is the number of a version, such as 7.")
    return Q(policy__number=int(text))


def _bulk(text: str) -> Q:
    return Q(id__in=BulkRow.objects.filter(run=_id("bulk_run", text)).values("call"))


def _repeats(text: str) -> Q:
    """Calls of the last so many days that were answered from an earlier one."""
    if not text.isdecimal() or not 1 <= int(text[:4]) <= 366:
        raise Invalid(detail="repeats is a number of days, from 1 to 366.")
    since = clock.now() - timedelta(days=int(text))
    return Q(twin_of__isnull=False, recorded_at__gte=since)


def _overdue(text: str) -> Q:
    return Q(settled_at__isnull=True, due_at__lt=late_before(clock.now()))


def _unsettled(text: str) -> Q:
    return Q(state__in=[CallState.INTERRUPTED, CallState.AMBIGUOUS]) | Q(
        settled_at__isnull=True, turn__closed_at__isnull=False
    )


def _named(text: str) -> Q:
    """By any name that somebody may have of a call."""
    wanted = Q(tool_call_id=text) | Q(idempotency_key=text) | Q(tool__icontains=text)
    try:
        return wanted | Q(id=ids.read("call", text))
    except NotFound:
        return wanted


FILTERS: dict[str, Keep] = {
    "state": _words("state", "state", CallState),
    "effect": _words("effect", "effect", Effect),
    "class": _words("class", "recovery_class", RecoveryClass),
    "cause": _words("cause", "cause", Cause),
    "tool": _exactly("tool"),
    "agent": _exactly("agent__name"),
    "session": _session,
    "policy": _policy,
    "no_settled_result": _unsettled,
    "overdue": _overdue,
    "bulk": _bulk,
    "repeats": _repeats,
    "q": _named,
}
"""The filters of the address, each as what it keeps."""

CHOICES: dict[str, list[tuple[str, str]]] = {
    "state": [(word, label.text) for word, label in STATES.items()],
    "effect": [(word, label.text) for word, label in EFFECTS.items()],
    "class": [(word, word) for word in RecoveryClass],
    "cause": [(word, word.replace("_", " ")) for word in Cause],
}
TEXTS = ("tool", "agent", "session", "policy")
FLAGS = ("no_settled_result", "overdue")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A filter in force: its name, its value, and the address of the list without it."""

    name: str
    value: str
    without: str

    @property
    def text(self) -> str:
        """The filter in words."""
        name = self.name.replace("_", " ")
        return name if self.name in FLAGS else f"{name}: {self.value}"


@dataclass(frozen=True, slots=True)
class Row:
    """A call and its labels."""

    call: ToolCall
    shown: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the list. `blames` is the filter that excludes most, with what it leaves out."""

    given: dict[str, str]
    chosen: list[Chosen] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    figure: Figure = field(default_factory=lambda: Figure(0))
    older: str = ""
    newest: str = ""
    is_first: bool = True
    looked_at_all: bool = True
    any_call: bool = True
    blames: tuple[Chosen, Figure] | None = None

    @property
    def query(self) -> str:
        """The filters as they stand in an address."""
        return urlencode(self.given)


def given_in(address: Mapping[str, str]) -> dict[str, str]:
    """The filters of an address that say something, by name."""
    return {name: address[name][:TEXT_MAX].strip() for name in FILTERS
            if address.get(name, "").strip()}  # fmt: skip


def nothing(address: Mapping[str, str]) -> Listing:
    """The list of a refused filter: what was typed, and no rows."""
    given = given_in(address)
    return Listing(given, _chosen(given))


def of(person: Person, address: Mapping[str, str]) -> Listing:
    """One page of the workspace's calls. Raises Invalid for a filter that says nothing known."""
    given = given_in(address)
    own = ToolCall.objects.filter(workspace=person.workspace_id)
    cursor = address.get("cursor", "")[:200]
    place = place_of(cursor, given) if cursor else None
    kept, edge = _kept(own, given, place)
    found = list(kept.select_related("agent").order_by("-id")[: PAGE + 1])
    standings = of_many(found[:PAGE])
    last = found[PAGE - 1].id if len(found) > PAGE else edge
    counted = kept.order_by()[: EXACT_UP_TO + 1].count()
    return Listing(
        given=given,
        chosen=_chosen(given),
        rows=[Row(row, ids.shown("call", row.id), standings[row.id]) for row in found[:PAGE]],
        figure=Figure(counted, at_least=edge is not None),
        older=_address(given, cursor=cursor_of(last, given)) if last else "",
        newest=found[0].id.hex if found and place is None else "",
        is_first=place is None,
        looked_at_all=edge is None,
        any_call=bool(found) or own.exists(),
        blames=_blame(own, given) if not found and given else None,
    )


def _kept(own: Calls, given: Mapping[str, str], place: UUID | None) -> tuple[Calls, UUID | None]:
    """What the filters keep, and the last call that was looked at if there are older ones."""
    rows = own.filter(id__lt=place) if place else own
    edge = None
    if _has_no_index(given):
        edge = rows.order_by("-id").values_list("id", flat=True)[WINDOW - 1 : WINDOW].first()
        rows = rows.filter(id__gte=edge) if edge else rows
    elif _is_open_only(given):
        rows = rows.open()
    for name, value in given.items():
        rows = rows.filter(FILTERS[name](value))
    return rows, edge


def _is_open_only(given: Mapping[str, str]) -> bool:
    states = set(given.get("state", "").split(",")) - {""}
    is_open = bool(states) and not states & {str(each) for each in SETTLED}
    return is_open or any(flag in given for flag in FLAGS)


def _has_no_index(given: Mapping[str, str]) -> bool:
    return bool(given) and not ({"session", "bulk", "repeats"} & set(given) or _is_open_only(given))


def _chosen(given: dict[str, str]) -> list[Chosen]:
    return [
        Chosen(name, value, _address({n: v for n, v in given.items() if n != name}))
        for name, value in given.items()
    ]


def _address(given: Mapping[str, str], **more: str) -> str:
    query = urlencode({**given, **more})
    return f"?{query}" if query else "?"


def _blame(own: Calls, given: dict[str, str]) -> tuple[Chosen, Figure] | None:
    """The filter without which the list would be longest."""
    left = []
    for chosen in _chosen(given):
        rest = {name: value for name, value in given.items() if name != chosen.name}
        kept, edge = _kept(own, rest, None)
        left.append((chosen, Figure(kept.order_by()[: EXACT_UP_TO + 1].count(), edge is not None)))
    most = max(left, key=lambda each: each[1].number)
    return most if most[1].number else None


def newer(person: Person, address: Mapping[str, str]) -> int:
    """How many calls of these filters came after the newest that is shown, counted to a hundred."""
    given = given_in(address)
    since = _id("call", address.get("since", ""))
    own: Any = ToolCall.objects.filter(workspace=person.workspace_id, id__gt=since)
    kept, _ = _kept(own, given, None)
    return kept.order_by()[:100].count()
