"""What a list can be asked by the words of an address: one table of filters for page and API.

A list names its filters once, as a mapping from the name in the address to what it keeps. The
console adds titles and fields to the names, the API types; both keep the same rows by them.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import chain
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from ledger import ids
from ledger.errors import Invalid, NotFound
from ledger.numbers import whole
from ledger.strictjson import is_identifier
from ledger.vocabulary import spoken


class HasNul(Invalid):
    """A text with a NUL character came, which PostgreSQL keeps in none."""


Keep = Callable[[str], Q]
"""What a filter keeps for a value of the address. Raises Invalid for one that says nothing."""

TEXT_MAX = 300
NUL = "\x00"
NO_NUL = "{} has a NUL character. Send it again without NUL."
YEARS = range(1971, 9000)
"""The years that an address can ask for: a day before and after each is still a day."""
SKEW = timedelta(minutes=5)
"""By how much the clock of whoever made an id may differ from the database's."""


def narrowed(rows: Any, given: Mapping[str, str], keeps: Mapping[str, Keep]) -> Any:
    """The rows that every given filter keeps. Raises Invalid, naming the filter."""
    for name, value in given.items():
        rows = rows.filter(keeps[name](value))
    return rows


def words_of(name: str, words: Collection[str], text: str) -> list[str]:
    """The values of a filter, which come with commas between them. Raises Invalid."""
    given = text.split(",")
    unknown = set(given) - set(words)
    if unknown:
        raise Invalid(
            detail=f"{name} has no value {sorted(unknown)[0][:40]!r}; it is one of "
            f"{', '.join(words)}."
        )
    return given


def words(name: str, column: str, known: Any) -> Keep:
    """A filter by words of the vocabulary, which come with commas between them."""
    return lambda text: Q(**{f"{column}__in": words_of(name, known, text)})


def one_of(name: str, known: Collection[str], keep: Keep) -> Keep:
    """The same where each word has a condition of its own; several keep what any of them does."""

    def kept(text: str) -> Q:
        found = Q()
        for word in words_of(name, known, text):
            found |= keep(word)
        return found

    return kept


def named(name: str, *columns: str) -> Keep:
    """A filter by a text that stands in one of these columns as it is."""

    def kept(text: str) -> Q:
        found = Q()
        for column in columns:
            found |= Q(**{column: a_text(name, text)})
        return found

    return kept


def a_text(name: str, text: str) -> str:
    """A text that PostgreSQL can compare. Raises Invalid."""
    if len(text) > TEXT_MAX or NUL in text:
        raise Invalid(detail=f"{name} is a text of at most {TEXT_MAX} characters, without NUL.")
    return text


def tools(column: str) -> Keep:
    """A filter by the name of a tool, or by several with commas between them."""

    def kept(text: str) -> Q:
        given = text.split(",")
        if not all(map(is_identifier, given)):
            raise Invalid(detail="tool is the name of a tool, or several with commas between them.")
        return Q(**{f"{column}__in": given})

    return kept


def an_id(noun: str, text: str) -> UUID:
    """An id of an address. Raises Invalid for what is none."""
    try:
        return ids.read(noun, text)
    except NotFound as error:
        raise Invalid(detail=f"{text[:40]!r} is no id of a {spoken(noun)}.") from error


def number(name: str, text: str, most: int) -> int:
    """A number of an address, from 1 on. Raises Invalid."""
    found = whole(text)
    if found is None or not 1 <= found <= most:
        raise Invalid(detail=f"{name} is a number from 1 to {most}.")
    return found


def between(column: str) -> dict[str, Keep]:
    """From a moment on, and until one, which is not kept itself."""
    return {
        "from": lambda text: Q(**{f"{column}__gte": moment("from", text)}),
        "until": lambda text: Q(**{f"{column}__lt": moment("until", text)}),
    }


def moment(name: str, text: str, zone: tzinfo = UTC) -> datetime:
    """An instant of an address: a date, or date and time; without an offset in `zone`."""
    try:
        found = parse_datetime(text)
        day = None if found else parse_date(text)
    except ValueError:  # a day or an hour that does not exist
        found = day = None
    if day is not None:
        found = datetime(day.year, day.month, day.day)
    if found is None or found.year not in YEARS:
        raise Invalid(
            detail=f"{name} is a date such as 2027-03-02, or date and time such as "
            "2027-03-02T09:41."
        )
    return found if timezone.is_aware(found) else timezone.make_aware(found, zone)


def day(name: str, text: str) -> date:
    """A day of an address. Raises Invalid."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.year not in YEARS:
        raise Invalid(detail=f"{name} is a day such as 2027-03-02; {text[:20]!r} is none.")
    return found


def refuse_nul(*fields: QueryDict, path: str = "") -> None:
    """Raise HasNul for a NUL character, which PostgreSQL has in no text, in a path or in fields.

    The names of fields are looked at with their values; uploaded files are bytes and are not.
    """
    if NUL in path:
        raise HasNul(detail=NO_NUL.format("The address"))
    for name, values in chain.from_iterable(each.lists() for each in fields):
        if any(NUL in text for text in (name, *values)):
            raise HasNul(detail=NO_NUL.format(f"The field {name[:40]!r}"))


def dated(rows: Any, given: Mapping[str, str]) -> Any:
    """The stretch of ids, which are ordered by time, that a filter by moments can lie in."""
    if "from" in given:
        rows = rows.filter(id__gte=_id_at(moment("from", given["from"]) - SKEW))
    if "until" in given:
        rows = rows.filter(id__lt=_id_at(moment("until", given["until"]) + SKEW))
    return rows


def _id_at(moment: datetime) -> UUID:
    """The lowest UUIDv7 of a moment (RFC 9562, 5.7)."""
    return UUID(int=max(0, int(moment.timestamp() * 1000)) << 80)
