"""The filters on what needs an answer: incidents that ask a person, and holds (console, section 3).

The two are listed together in the console's inbox and apart by the API, by the same names. What a
filter cannot be about keeps nothing: nobody takes a hold, and none has a cause.
"""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from ledger import clock, filters
from ledger.filters import Keep, an_id, words, words_of
from ledger.models import Event
from ledger.vocabulary import ASKS_PERSON, CallState, Cause, IncidentKind, IncidentState
from recovery import asides, call_filters, disputed
from recovery.call_filters import NOBODY, NOT_NAMES
from recovery.models import Aside, Assignment, Dispute

HOLD_KIND = "hold"
KIND_WORDS = (HOLD_KIND, *map(str, IncidentKind))
_AT_ITS_END = Q(state=IncidentState.EXHAUSTED) | ~Q(kind=IncidentKind.RECOVERY)
NEEDS_ANSWER = _AT_ITS_END & Q(closed_at__isnull=True)
"""Incidents whose turn is a person's: recovery asks nobody before the machine is at its end."""
HOLD_NEEDS_ANSWER = Q(ended_at__isnull=True, reason__in=sorted(ASKS_PERSON))
"""Holds that end by a person's word, not with what they wait for."""

NOTHING = Q(pk__in=[])


def came(since: datetime) -> Q:
    """Which of those that need an answer do so only since then.

    They were opened, or given up by the machine, or have come back from being set aside.
    """
    given_up = Event.objects.filter(
        call=OuterRef("call"), at__gt=since, to_state=CallState.AMBIGUOUS
    ).exclude(from_state=CallState.AMBIGUOUS)
    own = Q(Exists(given_up), kind=IncidentKind.RECOVERY)
    return Q(opened_at__gt=since) | own | asides.came_back(since)


def _kind(text: str) -> Q:
    return Q(kind__in=words_of("kind", KIND_WORDS, text))


def _overdue(at: str, level: str = "") -> Keep:
    def keep(text: str) -> Q:
        late = Q(**{f"{at}__lt": clock.now()})
        return late | Q(**{f"{level}__gt": 0}) if level else late

    return keep


def _older(column: str) -> Keep:
    def keep(text: str) -> Q:
        minutes = filters.number("age_min", text, 999_999)
        return Q(**{f"{column}__lt": clock.now() - timedelta(minutes=minutes)})

    return keep


def _session(text: str) -> Q:
    id_ = an_id("session", text)
    return Q(call__session=id_) | Q(session=id_)


def _assigned(text: str) -> Q:
    name = filters.a_text("assigned", text)
    rows = Assignment.objects.all()
    named = rows if name in NOT_NAMES else rows.filter(to_name=name)
    found = Q(id__in=named.values("incident"))
    return ~found if name == NOBODY else found


def _aside(text: str) -> Q:
    words_of("aside", ("yes", "no"), text)
    found = Q(id__in=Aside.objects.filter(asides.in_force()).values("incident"))
    return found if text == "yes" else ~found


def _disputed(text: str) -> Q:
    return Q(id__in=Dispute.objects.filter(disputed.unanswered()).values("incident"))


def _only(word: str) -> Keep:
    """What is neither taken nor assigned nor set aside, ever: kept by this word alone."""
    return lambda text: Q() if text == word else NOTHING


INCIDENTS: dict[str, Keep] = {
    **call_filters.of_call("call__"),
    **filters.between("opened_at"),
    "kind": _kind,
    "age_min": _older("opened_at"),
    "taken": call_filters.taken("incident"),
    "assigned": _assigned,
    "disputed": _disputed,
    "aside": _aside,
    "overdue": _overdue("review_at", "escalation_level"),
    "bulk": call_filters.bulk("incident"),
    # An incident may be about a session.
    "cause": words("cause", "cause", Cause),
    "session": _session,
    "agent": filters.named("agent", "call__agent__name", "session__agent__name"),
}
"""What can be asked of incidents."""

HOLDS: dict[str, Keep] = {
    **{name: keep for name, keep in call_filters.of_call("call__").items() if name != "cause"},
    **filters.between("asked_at"),
    "kind": lambda text: Q() if HOLD_KIND in words_of("kind", KIND_WORDS, text) else NOTHING,
    "age_min": _older("asked_at"),
    "taken": _only(NOBODY),
    "assigned": _only(NOBODY),
    "aside": _only("no"),
    "overdue": _overdue("expires_at"),
}
"""The same about holds; a filter that is not here keeps none of them."""
