"""Seeing one masked field of one call: with the right to it, on grounds, for a minute, audited.

The deed is written before the value is read, and it can never be changed; the value is in that one
answer and nowhere else. Source: console, section 14; security, section 6.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from dashboard.models import Deed
from dashboard.people import need
from ledger import clock, ids, masking, masks
from ledger.errors import Invalid, NotFound
from ledger.models import Result, ToolCall
from ledger.permissions import Person, Right, need_fresh_login

SHOWN_FOR = timedelta(seconds=60)
FIELDS_MAX = 200
GROUNDS_MAX = 2_000
DEED = "revealed a masked field"


@dataclass(frozen=True, slots=True)
class Secret:
    """One masked field: a pointer that begins with `/arguments`, `/result` or `/error`."""

    pointer: str
    value: Any
    why: str

    @property
    def text(self) -> str:
        """The value as it is shown: a text as it is, anything else as JSON."""
        if isinstance(self.value, str):
            return self.value
        return json.dumps(self.value, ensure_ascii=False, indent=1)


def secrets_of(call: ToolCall) -> list[Secret]:
    """What is masked of a call, in the order of its page; at most 200 fields."""
    hidden = masks.of(call)
    found = [*_within("/arguments", json.loads(call.arguments), hidden.arguments)]
    result = Result.objects.filter(call=call).first()
    if result is not None:
        found += _within("/result", _result(result), hidden.result)
    found += _within("/error", call.error or None, ())
    return found[:FIELDS_MAX]


def _within(member: str, value: Any, pointers: tuple[str, ...]) -> Iterator[Secret]:
    for each in masking.fields(value, pointers):
        yield Secret(f"{member}{each.pointer}", each.value, each.why)


def _result(row: Result) -> Any:
    """A result's JSON or text; None where it is neither."""
    body = bytes(row.body)
    if not row.why_not_json:
        return json.loads(body)
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def record(call: ToolCall, pointer: str, grounds: str, by: Person) -> Deed:
    """Write down that a person sees a field, and why.

    Raises PermissionMissing, LoginStale, Invalid without grounds, NotFound for what is not masked.
    """
    need(by, Right.REVEAL)
    need_fresh_login(by)
    if not grounds.strip():
        raise Invalid(detail="Say in one sentence why you must see it: the audit keeps it.")
    secret_at(call, pointer)
    return Deed.objects.create(
        workspace_id=by.workspace_id,
        person_id=by.id,
        person_name=by.name,
        deed=DEED,
        target=f"{ids.shown('call', call.id)} {pointer}"[:200],
        grounds=grounds[:GROUNDS_MAX],
    )


def secret_at(call: ToolCall, pointer: str) -> Secret:
    """The masked field at a pointer. Raises NotFound where nothing is masked there."""
    for each in secrets_of(call):
        if each.pointer == pointer:
            return each
    raise NotFound(noun="masked field")


def left_s(deed_id: UUID) -> int:
    """For how many seconds more a reveal is shown. Raises Invalid once its minute is over."""
    deed = Deed.objects.get(id=deed_id)
    left = (deed.at + SHOWN_FOR - clock.now()).total_seconds()
    if left <= 0:
        raise Invalid(detail="The minute of this reveal is over. Ask again, with grounds.")
    return max(1, int(left))
