"""The filters on what stands on a call, for every list whose rows lead to one (console, section 2).

`path` is the way from a row to its call: empty from the call itself, `call__` from what is about
one.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from dashboard import label_queries
from dashboard.filters import Filter, Keep, number
from dashboard.label_queries import BASES, NOTHING_YET
from dashboard.labels import EFFECTS, STATES
from ledger import ids
from ledger.api.pages import words_of
from ledger.errors import Invalid, NotFound
from ledger.vocabulary import CallState, Cause, DeliveryKind, Effect, RecoveryClass
from recovery import takings
from recovery.models import Taking

SHOWN = (NOTHING_YET, *map(str, DeliveryKind), "correction")
NOBODY, SOMEBODY = NOT_NAMES = ("nobody", "somebody")


def of_call(path: str) -> tuple[Filter, ...]:
    """State, effect, shown to the model, basis, class, cause, tool, agent, session, policy."""
    return (
        Filter("state", "State", words("state", f"{path}state", CallState), "choice",
               tuple((word, label.text) for word, label in STATES.items()), is_first=True),
        Filter("effect", "Effect", words("effect", f"{path}effect", Effect), "choice",
               tuple((word, label.text) for word, label in EFFECTS.items()), is_first=True),
        Filter("class", "Class", words("class", f"{path}recovery_class", RecoveryClass), "choice",
               _plain(RecoveryClass), is_first=True),
        Filter("tool", "Tool", lambda text: Q(**{f"{path}tool": text}), is_first=True),
        Filter("saw", "Shown to the model", _one_of("saw", SHOWN, lambda word:
               label_queries.was_shown(path, word)), "choice", _plain(SHOWN)),
        Filter("read", "Read", _one_of("read", ("yes", "not_yet"), lambda word:
               label_queries.was_read(path, word == "yes")), "choice",
               (("yes", "read"), ("not_yet", "not read yet"))),
        Filter("basis", "Basis", _one_of("basis", BASES, lambda word:
               label_queries.rests_on(path, word)), "choice", _plain(BASES)),
        Filter("cause", "Cause", words("cause", f"{path}cause", Cause), "choice", _plain(Cause)),
        Filter("agent", "Agent", lambda text: Q(**{f"{path}agent__name": text})),
        Filter("session", "Session", lambda text: Q(**{f"{path}session": an_id("session", text)})),
        Filter("policy", "Policy version", lambda text:
               Q(**{f"{path}policy__number": number("policy", text, 10**9 - 1)}), "number"),
    )  # fmt: skip


def _plain(words: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(word), str(word).replace("_", " ")) for word in words)


def words(name: str, column: str, known: Any) -> Keep:
    """A filter by words of the vocabulary, which come with commas between them."""
    return lambda text: Q(**{f"{column}__in": words_of(name, known, text)})


def _one_of(name: str, known: tuple[str, ...], keep: Keep) -> Keep:
    def kept(text: str) -> Q:
        found = Q()
        for word in words_of(name, known, text):
            found |= keep(word)
        return found

    return kept


def an_id(noun: str, text: str) -> UUID:
    """An id of an address. Raises Invalid for what is none."""
    try:
        return ids.read(noun, text)
    except NotFound as error:
        raise Invalid(detail=f"{text[:40]!r} is no id of a {noun.replace('_', ' ')}.") from error


def between(column: str) -> tuple[Filter, Filter]:
    """From a moment on, and until one: a date, or date and time, in the reader's zone."""
    hint = "Date, or date and time, in your zone: 2027-03-02 09:41"
    return (
        Filter("from", "From", lambda text: Q(**{f"{column}__gte": moment("from", text)}),
               "moment", hint=hint),
        Filter("until", "Until", lambda text: Q(**{f"{column}__lt": moment("until", text)}),
               "moment", hint=hint),
    )  # fmt: skip


def moment(name: str, text: str) -> datetime:
    """An instant of an address; without an offset it is meant in the reader's zone."""
    try:
        found = parse_datetime(text)
        day = None if found else parse_date(text)
    except ValueError:  # a day or an hour that does not exist
        found = day = None
    if day is not None:
        found = datetime(day.year, day.month, day.day)
    if found is None or not 1970 < found.year < 9000:
        raise Invalid(
            detail=f"{name} is a date such as 2027-03-02, or date and time such as "
            "2027-03-02T09:41."
        )
    return found if timezone.is_aware(found) else timezone.make_aware(found)


def taken(row: str) -> Filter:
    """By whom its incident is taken now; `row` is the way from a taking to the row of the list."""

    def keep(text: str) -> Q:
        own = Taking.objects.filter(takings.in_force(), incident__closed_at=None)
        named = own.filter(by_name=text) if text not in NOT_NAMES else own
        found = Q(id__in=named.exclude(**{row: None}).values(row))
        return ~found if text == NOBODY else found

    return Filter("taken", "Taken by", keep, hint="A name, or nobody, or somebody")
