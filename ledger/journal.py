"""The only writer of state. It takes a list of moves; one move is a list of one.

A move becomes one event and one update of its call, in the caller's transaction. The events go
in first: PostgreSQL numbers, dates and chains them and refuses an edge that the machine does
not have (`event_guard`). Then the calls follow: PostgreSQL refuses a state that is not the one
of the last event (`call_guard`). Entering a state disarms every deadline that it does not have.

The caller holds the row locks of the calls, taken in the order of their ids. Nothing here
opens a transaction, publishes, or touches the outside.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from django.db import connection

from ledger import machine, strictjson
from ledger.models import Event, ToolCall
from ledger.pipelines import write
from ledger.tables import Columns, table
from ledger.vocabulary import Actor, CallState, Cause, Deadline, Effect

NOTHING: Mapping[str, Any] = {}


class Position(NamedTuple):
    """Where a call stands: what a move must know of it. A ToolCall has the same attributes."""

    id: UUID
    workspace_id: UUID
    state: CallState | None
    effect: Effect
    seq: int


class Standing(Protocol):
    """Anything that knows where a call stands: a Position, a ToolCall, a row of a claim."""

    @property
    def id(self) -> UUID: ...
    @property
    def workspace_id(self) -> UUID: ...
    @property
    def state(self) -> CallState | None: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def seq(self) -> int: ...


@dataclass(slots=True, kw_only=True)
class Move:
    """One transition to be made.

    `arm` gives deadlines as seconds from now (None disarms one); deadlines that the new state
    does not have are disarmed anyway. `columns` are further columns of the call to set.
    """

    call: Standing
    kind: str
    by: Actor
    by_id: str = ""
    to: CallState | None = None
    effect: Effect | None = None
    fence: int | None = None
    lease_s: float | None = None
    cause: Cause | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    arm: Mapping[Deadline, float | None] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Made:
    """A move that passed the machine: where it led, ready for both statements."""

    move: Move
    transition: machine.Transition
    source: CallState | None
    target: CallState
    effect: Effect
    seq: int

    @property
    def position(self) -> Position:
        """Where the call stands now."""
        return Position(
            self.move.call.id, self.move.call.workspace_id, self.target, self.effect, self.seq
        )


def append(moves: Sequence[Move]) -> list[Position]:
    """Write the moves, at most one for each call, and return where their calls stand now.

    Raises IllegalTransition before anything is written where the machine has no such edge, and
    a database error where a call is not where the move said.
    """
    made = [_check(move) for move in moves]
    _insert_events(made)
    _update_calls(made)
    for each in made:
        if isinstance(each.move.call, ToolCall):
            call = each.move.call
            call.state, call.effect, call.seq = each.target, each.effect, each.seq
    return [each.position for each in made]


def record(calls: Sequence[Mapping[str, Any]], moves: Sequence[Move]) -> None:
    """Insert new calls together with their first events.

    `calls` are the columns of each new row but state, effect and seq, which the last of its
    `moves` decides; `moves` holds those of all calls, each call's own in order, the first
    `recorded` or `imported`. `arm` of the last move holds.
    """
    made: dict[UUID, Made] = {}
    events = []
    for move in moves:
        each = _check(move)
        events.append(each)
        made[move.call.id] = each
    _insert_events(events)
    _insert_calls(calls, made, _stamps(events))


def _check(move: Move) -> Made:
    call = move.call
    transition, target = machine.step(move.kind, source=call.state, target=move.to, by=move.by)
    given = {*move.facts, *(name for name in ("fence", "cause") if getattr(move, name) is not None)}
    missing = transition.needs - given
    if missing:
        raise ValueError(f"{move.kind} must carry {', '.join(sorted(missing))}")
    effect = call.effect if move.effect is None else move.effect
    return Made(move, transition, call.state, target, effect, call.seq + 1)


def _stamps(events: Iterable[Made]) -> dict[UUID, set[str]]:
    stamps: dict[UUID, set[str]] = {}
    for each in events:
        if each.transition.stamps:
            stamps.setdefault(each.move.call.id, set()).add(each.transition.stamps)
    return stamps


EVENT_COLUMNS = (
    ("workspace_id", "uuid"),
    ("call_id", "uuid"),
    ("kind", "text"),
    ("from_state", "text"),
    ("to_state", "text"),
    ("effect", "text"),
    ("actor", "text"),
    ("actor_id", "text"),
    ("fence", "integer"),
    ("lease_s", "double precision"),
    ("cause", "text"),
    ("facts", "text"),
    ("n", "integer"),
)
INSERT_EVENTS = (
    "INSERT INTO ledger_event (workspace_id, call_id, seq, kind, from_state, to_state, effect, "
    "actor, actor_id, fence, lease_until, cause, facts, prev_hash, hash, settles) "
    "SELECT workspace_id, call_id, 0, kind, from_state, to_state, effect, actor, actor_id, fence, "
    "clock_timestamp() + lease_s * interval '1 second', cause, facts, '', '', false FROM {} "
    "ORDER BY n"
)


def _insert_events(made: Sequence[Made]) -> None:
    rows = [
        (
            each.move.call.workspace_id,
            each.move.call.id,
            each.move.kind,
            str(each.source or ""),
            str(each.target),
            str(each.effect),
            str(each.move.by),
            each.move.by_id,
            each.move.fence,
            each.move.lease_s,
            str(each.move.cause or ""),
            _written(each.move.facts),
            n,
        )
        for n, each in enumerate(made)
    ]
    text, parameters = table(EVENT_COLUMNS, rows)
    write(INSERT_EVENTS.format(text), parameters)


def _written(facts: Mapping[str, Any]) -> str:
    """The facts as canonical JSON; a word of a vocabulary counts as its text."""
    if not facts:
        return "{}"
    plain = {k: str(v) if isinstance(v, StrEnum) else v for k, v in facts.items()}
    return strictjson.canonical(plain).decode()


def _changes(each: Made) -> dict[str, Any]:
    """The columns of one call's update: state first, then deadlines in seconds, then the rest."""
    armable = machine.TIMERS[each.target]
    changes: dict[str, Any] = {
        "seq": each.seq,
        "state": str(each.target),
        "effect": str(each.effect),
    }
    if each.target is not each.source:
        # The next step belongs to the state that dated it, even where both have one.
        gone = (d for d in Deadline if d not in armable or d is Deadline.NEXT_STEP)
        changes |= {f"{d}_at": None for d in gone}
    for deadline, seconds in each.move.arm.items():
        changes[f"{deadline}_at"] = seconds if deadline in armable else None
    return changes | dict(each.move.columns)


def _update_sql(columns: tuple[str, ...], nulls: tuple[str, ...], stamp: str) -> str:
    sets = [f"{name} = {_value(name)}" for name in columns]
    sets += [f"{name} = NULL" for name in nulls]
    sets += [f"{stamp} = clock_timestamp()"] if stamp else []
    return f"UPDATE ledger_toolcall AS c SET {', '.join(sets)} FROM {{}} WHERE c.id = v.id"  # noqa: S608 names come from the model


def _typed(columns: Iterable[str]) -> Columns:
    return tuple((name, _sql_type(name)) for name in columns)


def _value(column: str) -> str:
    if column in DEADLINE_COLUMNS:
        return f"clock_timestamp() + v.{column} * interval '1 second'"
    return f"v.{column}"


def _sql_type(column: str) -> str:
    return "double precision" if column in DEADLINE_COLUMNS else COLUMN_TYPES[column]


DEADLINE_COLUMNS = frozenset({*(f"{deadline}_at" for deadline in Deadline), "ring_at"})
COLUMN_TYPES: dict[str, str] = {}


def _learn_column_types() -> None:
    for column in ToolCall._meta.concrete_fields:
        sql_type = (column.db_type(connection) or "").split("(")[0]
        COLUMN_TYPES[str(column.column)] = sql_type.replace("varchar", "text")


def _update_calls(made: Sequence[Made]) -> None:
    if not COLUMN_TYPES:
        _learn_column_types()
    groups: dict[tuple[tuple[str, ...], tuple[str, ...], str], list[tuple[Any, ...]]] = {}
    for each in made:
        changes = _changes(each)
        nulls = tuple(name for name, value in changes.items() if value is None)
        values = {name: value for name, value in changes.items() if value is not None}
        groups.setdefault((tuple(values), nulls, each.transition.stamps), []).append(
            (each.move.call.id, *values.values())
        )
    for (columns, nulls, stamp), rows in groups.items():
        text, parameters = table(_typed(("id", *columns)), rows)
        write(_update_sql(columns, nulls, stamp).format(text), parameters)


def _insert_sql(columns: tuple[str, ...], stamps: tuple[str, ...]) -> str:
    constants = {name: text for name, text in LITERALS.items() if name not in columns}
    names = (*columns, *constants, *stamps)
    values = (*map(_value, columns), *constants.values(), *("clock_timestamp()" for _ in stamps))
    return f"INSERT INTO ledger_toolcall ({', '.join(names)}) SELECT {', '.join(values)} FROM {{}}"  # noqa: S608 names come from the model


LITERALS: dict[str, str] = {}
"""What a new call has in the columns that nobody gave, as SQL."""


def _learn_literals() -> None:
    _learn_column_types()
    for column in ToolCall._meta.concrete_fields:
        name = str(column.column)
        if column.generated or column.primary_key:
            continue
        if column.has_default():
            default = column.get_default()
            LITERALS[name] = str(default) if isinstance(default, int) else "''"
        elif column.empty_strings_allowed and not column.null and column.blank:
            LITERALS[name] = "''"


def _insert_calls(
    calls: Sequence[Mapping[str, Any]], made: Mapping[UUID, Made], stamps: Mapping[UUID, set[str]]
) -> None:
    if not LITERALS:
        _learn_literals()
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[list[Any]]] = {}
    for call in calls:
        given = {**call, **_changes(made[call["id"]])}
        row = {name: value for name, value in given.items() if value is not None}
        key = (tuple(row), tuple(sorted(stamps[call["id"]])))
        groups.setdefault(key, []).append(list(row.values()))
    # In one order of the groups too, since a row may wait here for another's unique key.
    for columns, stamped in sorted(groups):
        text, parameters = table(_typed(columns), groups[columns, stamped])
        write(_insert_sql(columns, stamped).format(text), parameters)


def events_of(call_id: UUID) -> list[Event]:
    """The events of a call in order."""
    return list(Event.objects.filter(call_id=call_id).order_by("seq"))
