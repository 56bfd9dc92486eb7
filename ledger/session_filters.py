"""The filters on sessions: by what stands open or wrong in each, by agent, by label."""

from collections.abc import Callable

from django.db.models import Exists, OuterRef, Q

from ledger import filters
from ledger.filters import Keep
from ledger.models import Drift, HandOff, Import, ToolCall, Turn
from ledger.vocabulary import HandOffEnd

_OF_THIS = OuterRef("id")


def _with_open_turn() -> Q:
    return Q(Exists(Turn.objects.filter(session=_OF_THIS, closed_at=None)))


def _unresolved() -> Q:
    own = ToolCall.objects.open().filter(session=_OF_THIS, handed_off=None)
    taken = HandOff.objects.filter(to_session=_OF_THIS, ended_as=HandOffEnd.ACCEPTED)
    held = ToolCall.objects.open().filter(handed_off__in=taken.values("id"))
    return Q(Exists(own)) | Q(Exists(held))


def _drifting() -> Q:
    drifts = Drift.objects.filter(session=_OF_THIS, epoch=OuterRef("epoch"), blocked=True)
    return Q(Exists(drifts))


def _stopped() -> Q:
    return Q(stopped_at__isnull=False)


def _imported() -> Q:
    return Q(Exists(Import.objects.filter(session=_OF_THIS)))


SHOWS: dict[str, Callable[[], Q]] = {
    "open": _with_open_turn,
    "unresolved": _unresolved,
    "drift": _drifting,
    "stopped": _stopped,
    "imported": _imported,
}
"""What the filter `show` keeps, by its words."""

SESSIONS: dict[str, Keep] = {
    "show": filters.one_of("show", SHOWS, lambda word: SHOWS[word]()),
    "agent": filters.named("agent", "agent__name"),
    "q": lambda text: Q(label__icontains=filters.a_text("q", text)),
}
"""What can be asked of the list of sessions."""
