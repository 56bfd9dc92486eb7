"""What is secret of a call, for everybody who reads of it and is not its agent (console, 14).

The tool's schema marks arguments (`x-secret`); its policy names pointers into arguments and
results (`masked`): the version that the call was recorded under, and the one that holds now, so
that a field marked today is hidden in yesterday's calls too.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from uuid import UUID

from django.db.models import F, Q

from ledger import masking
from ledger.models import Policy, Result, Session, ToolCall, ToolVersion


@dataclass(frozen=True, slots=True)
class Hidden:
    """The JSON pointers of what is secret of a call, and the secret texts of its arguments."""

    arguments: tuple[str, ...] = ()
    result: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def found(self) -> tuple[str, ...]:
        """The pointers that hold in evidence, which may quote what was asked or what came back."""
        return (*self.arguments, *self.result)

    def text(self, text: str) -> str:
        """A text about the call, such as its error, with the secrets in it masked."""
        return masking.masked_text(text, self.texts)


def of(call: ToolCall) -> Hidden:
    """What is secret of one call; two queries."""
    return of_calls([call])[call.id]


def of_calls(calls: Iterable[ToolCall]) -> dict[UUID, Hidden]:
    """What is secret of each of these calls, in two queries for all."""
    rows = list(calls)
    schemas = _schemas(rows)
    by_policy, by_tool = _policies(rows)
    return {
        row.id: _hidden(
            row,
            schemas.get(row.tool_version_id, ()),
            (*by_policy.get(row.policy_id, ()), *by_tool.get((row.workspace_id, row.tool), ())),
        )
        for row in rows
    }


def texts_of(session: Session) -> dict[str, str]:
    """The secret texts of a session's calls and their results, with why, the longest first."""
    hidden = of_calls(ToolCall.objects.filter(session=session))
    found = dict(chain.from_iterable(each.texts.items() for each in hidden.values()))
    for call_id, value in _results({id_ for id_, each in hidden.items() if each.result}):
        found |= masking.texts_in(value, hidden[call_id].result)
    return dict(sorted(found.items(), key=lambda each: -len(each[0])))


def in_session(session: Session, value: Any) -> Any:
    """A JSON value about a session's calls, such as a transcript, for whoever is not its agent."""
    return masking.masked(value, known=texts_of(session))


def _results(calls: Iterable[UUID]) -> Iterator[tuple[UUID, Any]]:
    found = Result.objects.filter(call__in=calls).values_list("call_id", "body")
    for call_id, body in found:
        value = _read(bytes(body))
        # Providers and imports hand JSON on as a text.
        yield call_id, _read(value) if isinstance(value, str) else value


def _read(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _schemas(rows: Iterable[ToolCall]) -> dict[UUID, list[str]]:
    found = ToolVersion.objects.filter(id__in={row.tool_version_id for row in rows})
    return {
        id_: masking.secret_pointers(schema)
        for id_, schema in found.values_list("id", "input_schema")
    }


def _policies(
    rows: Iterable[ToolCall],
) -> tuple[dict[UUID, list[str]], dict[tuple[UUID, str], list[str]]]:
    """The pointers of the calls' own policies by id, and of those that hold now by tool."""
    holds_now = Q(
        tool__name__in={row.tool for row in rows},
        workspace__in={row.workspace_id for row in rows},
        number=F("tool__policy_version"),
    )
    found = Policy.objects.filter(Q(id__in={row.policy_id for row in rows}) | holds_now)
    own: dict[UUID, list[str]] = {}
    now: dict[tuple[UUID, str], list[str]] = {}
    names = ("id", "workspace_id", "tool__name", "number", "tool__policy_version", "document")
    for id_, workspace_id, tool, number, present, document in found.values_list(*names):
        own[id_] = document.get("masked", [])
        if number == present:
            now[workspace_id, tool] = own[id_]
    return own, now


def _hidden(row: ToolCall, schema: Iterable[str], policies: Iterable[str]) -> Hidden:
    named = sorted(set(policies))
    arguments = (*schema, *_within(named, "/arguments"))
    texts = masking.texts_in(_arguments(row), arguments)
    return Hidden(arguments, _within(named, "/result"), texts)


def _within(pointers: Iterable[str], member: str) -> tuple[str, ...]:
    return tuple(each.removeprefix(member) for each in pointers if each.startswith(f"{member}/"))


def _arguments(row: ToolCall) -> Any:
    return json.loads(row.arguments_received or row.arguments)
