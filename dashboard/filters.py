"""What an address asks of a list: filters, order, columns. One table for each list, as data.

A list names its filters once (`Table`); form, chips, refusals, counts and the words of an empty
list follow from it. What each keeps is `keeps`, which the API reads too. All of it stands in the
address, so a link, the Back button and a saved view hold the same list (console, section 3).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils import timezone

from ledger.filters import TEXT_MAX, Keep, moment, narrowed


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter: its name in addresses, its title, and how it is asked for.

    `kind` is `choice`, `text`, `number`, `moment`, `flag`, or `carried` for one that no field
    asks for. The first ones stand open; the others lie behind "More filters".
    """

    name: str
    title: str
    kind: str = "text"
    choices: tuple[tuple[str, str], ...] = ()
    is_first: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be left out; `name` is also the class of its cells."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Table:
    """What can be asked of one list. The first sort, and `shown` of the columns, if none is."""

    filters: tuple[Filter, ...]
    keeps: Mapping[str, Keep]
    sorts: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    hidden: frozenset[str] = frozenset()
    groups: tuple[tuple[str, str], ...] = ()

    @property
    def by_name(self) -> dict[str, Filter]:
        return {each.name: each for each in self.filters}

    @property
    def usual(self) -> tuple[str, ...]:
        """The names of the columns that are drawn unless others are chosen."""
        return tuple(each.name for each in self.columns if each.name not in self.hidden)


@dataclass(frozen=True, slots=True)
class Field:
    """A filter as a field of the form, with what was given."""

    filter: Filter
    value: str

    @property
    def is_several(self) -> bool:
        """Whether the value is none of the choices: several words, or one that does not exist."""
        return bool(self.value) and self.value not in dict(self.filter.choices)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A filter in force: its name, its value, its text, and the address of the list without it."""

    name: str
    value: str
    text: str
    without: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What one address asks of a list; and the same address with some of it changed."""

    table: Table
    given: Mapping[str, str]
    sort: str = ""
    columns: tuple[str, ...] = ()
    group: str = ""

    @property
    def narrows(self) -> bool:
        return bool(self.given)

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns to draw, in the table's order."""
        wanted = self.columns or self.table.usual
        return tuple(each for each in self.table.columns if each.name in wanted)

    @property
    def column_names(self) -> frozenset[str]:
        return frozenset(each.name for each in self.shown)

    @property
    def width(self) -> int:
        """How many columns a row has, with the two that are always there."""
        return len(self.shown) + 2

    @property
    def query(self) -> str:
        """The address: only what differs from a list about which nothing was asked."""
        order = {"sort": self.sort, "group": self.group, "columns": ",".join(self.columns)}
        said = {name: text for name, text in order.items() if text}
        return urlencode({**self.given, **said}, safe=",")

    @property
    def unfiltered(self) -> str:
        """The same order and columns without any filter."""
        return replace(self, given={}).query

    @property
    def carried(self) -> list[tuple[str, str]]:
        """Everything of the address, for a form that sends other fields along with it."""
        order = {"sort": self.sort, "group": self.group}
        return [*self.given.items(), *((name, text) for name, text in order.items() if text)]

    @property
    def excludes(self) -> str:
        """How much one filter excludes where nothing is left: all of them, if it stands alone."""
        return "most" if len(self.given) > 1 else "all of them"

    def dropping(self, name: str) -> "Asked":
        """The same without one filter."""
        return replace(self, given={n: v for n, v in self.given.items() if n != name})

    @property
    def chosen(self) -> list[Chosen]:
        named = self.table.by_name
        return [
            Chosen(name, value, _text(named[name], value), f"?{self.dropping(name).query}")
            for name, value in self.given.items()
        ]

    def _fields(self, wanted: Iterable[Filter]) -> list[Field]:
        return [Field(each, self.given.get(each.name, "")) for each in wanted]

    @property
    def first(self) -> list[Field]:
        """The fields that stand open."""
        return self._fields(each for each in self.table.filters if each.is_first)

    @property
    def more(self) -> list[Field]:
        """The fields behind "More filters"."""
        rest = (each for each in self.table.filters if not each.is_first)
        return self._fields(each for each in rest if each.kind != "carried")

    @property
    def more_is_open(self) -> bool:
        return any(each.value for each in self.more)

    @property
    def hidden(self) -> list[Field]:
        """Filters without a field, carried along."""
        held = self._fields(each for each in self.table.filters if each.kind == "carried")
        return [each for each in held if each.value]

    @property
    def meant(self) -> dict[str, str]:
        """The filters as the API is given them. Raises Invalid for what is no moment."""
        named = self.table.by_name
        return {name: _meant(named[name], value) for name, value in self.given.items()}

    def kept(self, rows: Any) -> Any:
        """The rows that the filters keep. Raises Invalid, naming the filter."""
        return narrowed(rows, self.meant, self.table.keeps)


def _meant(filter_: Filter, value: str) -> str:
    """A flag is said by one word, and a moment of the reader's zone in UTC."""
    if filter_.kind == "flag":
        return "true"
    if filter_.kind == "moment":
        at = moment(filter_.name, value, timezone.get_current_timezone())
        return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value


def _text(filter_: Filter, value: str) -> str:
    if filter_.kind == "flag":
        return filter_.title
    words = dict(filter_.choices)
    return f"{filter_.title}: {', '.join(words.get(each, each) for each in value.split(','))}"


def read(table: Table, address: Any) -> Asked:
    """What an address asks of this list; words that the list does not know are left out.

    Columns come as `columns=a,b` or, from a form without scripts, as `column=a&column=b`.
    """
    ticked: Any = address.getlist("column") if isinstance(address, QueryDict) else []
    names = [*address.get("columns", "").split(","), *ticked]
    columns = tuple(each.name for each in table.columns if each.name in names)
    sort, group = address.get("sort", ""), address.get("group", "")
    return Asked(
        table=table,
        given={
            each.name: address[each.name][:TEXT_MAX].strip()
            for each in table.filters
            if address.get(each.name, "").strip()
        },
        sort=sort if sort in dict(table.sorts[1:]) else "",
        columns=() if columns == table.usual else columns,
        group=group if group in dict(table.groups) else "",
    )
