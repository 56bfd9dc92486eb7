"""The calls beside one call that ask for the same: by key, or by arguments within its session.

What ran before, or runs beside it, is the first thing to look at before anybody lets it run again.
Source: console, section 4; the looking up of twins: semantics, section 10.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Left

from dashboard import addresses
from ledger import ids
from ledger.models import ToolCall
from ledger.vocabulary import Effect

SHOWN_MAX = 20
ACTED = (Effect.HAPPENED, Effect.POSSIBLE)


@dataclass(frozen=True, slots=True)
class Twin:
    """One of them, and why it is one."""

    call: ToolCall
    why: str

    @property
    def shown(self) -> str:
        return ids.shown("call", self.call.id)

    @property
    def address(self) -> str:
        return addresses.of("call", self.call.id)

    @property
    def acted(self) -> bool:
        """Whether its effect happened or may have: a second one would be the same effect twice."""
        return self.call.effect in ACTED


class Look(NamedTuple):
    """One way in which calls are alike, and the calls that are."""

    why: str
    rows: "QuerySet[ToolCall]"


def of(call: ToolCall) -> list[Twin]:
    """The twins of a call, at most 20 of each kind; four look-ups, each served by an index."""
    found: dict[UUID, Twin] = {}
    for look in _looks(call):
        for row in look.rows.exclude(id=call.id).order_by("-id")[:SHOWN_MAX]:
            found.setdefault(row.id, Twin(row, look.why))
    return list(found.values())


def _looks(call: ToolCall) -> Iterator[Look]:
    own = ToolCall.objects.filter(workspace=call.workspace_id)
    if call.twin_of_id is not None:
        yield Look("the call that this one repeats", own.filter(id=call.twin_of_id))
    yield Look("the same call, asked for again", own.filter(twin_of=call.id))
    if call.template_key is not None:
        same_key = own.filter(tool=call.tool, template_key=call.template_key, twin_of=None)
        yield Look("the same tool and key", same_key)
    if call.session_id is not None:
        # Served by `call_same_arguments`, an index over the digest's first eight digits.
        near = own.filter(session=call.session_id, twin_of=None).annotate(
            digest=Left("arguments_sha256", 8)
        )
        same = near.filter(digest=call.arguments_sha256[:8], tool=call.tool,
                           arguments_sha256=call.arguments_sha256)  # fmt: skip
        yield Look("the same arguments in this session", same)
