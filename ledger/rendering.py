"""A session given out as a provider takes it: read at one instant, rendered, validated (R85).

Rendering changes nothing and is asked of PostgreSQL as read-only. What the profile's own rules
would refuse is never given out: that is our error, by name.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection, transaction

from ledger import conversations, ids, notices
from ledger.conversations import Conversation
from ledger.entries import Answered, call_part, entries, result_part
from ledger.errors import Invalid, Unrenderable
from ledger.models import Session
from ledger.offers import Item
from ledger.transcripts.layout import lay_out
from ledger.transcripts.neutral import Entry, Part, Role, Text
from ledger.transcripts.profiles import Profile, UnknownProfile, profile
from ledger.transcripts.render import Rendered, Shown, render
from ledger.transcripts.repair import Unrepairable
from ledger.vocabulary import DeliveryMode

STORED, SENT = "stored", "sent"
CAP_BYTES_MIN, CAP_BYTES_MAX = 256, 10 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a session is to be told. `up_to` is a turn's number, `cap_bytes` the longest result."""

    profile: str
    copy: str = SENT
    up_to: int | None = None
    cap_bytes: int | None = None
    consumer: str = conversations.CONSUMER


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session in a provider's shape, what each call is shown as, and the digest of both."""

    version: int
    body: Any
    manifest: Sequence[dict[str, Any]]
    unresolved: Sequence[str]

    @property
    def etag(self) -> str:
        """A strong ETag: equal for equal bytes only (RFC 9110, section 8.8.3)."""
        told = orjson.dumps([self.version, self.body, self.manifest], option=orjson.OPT_SORT_KEYS)
        return f'"{hashlib.sha256(told).hexdigest()[:32]}"'


def profile_named(name: str) -> Profile:
    """The provider of this name. Raises Invalid, with the names there are."""
    try:
        return profile(name)
    except UnknownProfile as unknown:
        known = ", ".join(unknown.names)
        raise Invalid(detail=f"There is no profile {name[:40]!r}. It is one of {known}.") from None


@contextmanager
def one_instant() -> Iterator[None]:
    """All reads inside see the same rows, and no write is possible."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def transcript(session: Session, wanted: Wanted) -> Transcript:
    """Tell a session. Raises Invalid for an unknown profile or cap, and Unrenderable."""
    provider = profile_named(wanted.profile)
    _check(wanted)
    with one_instant():
        session.refresh_from_db(fields=["version"])
        read = conversations.read(session, up_to=wanted.up_to, consumer=wanted.consumer)
    return told(read, provider, wanted)


def _check(wanted: Wanted) -> None:
    if wanted.copy not in (STORED, SENT):
        raise Invalid(detail="copy is 'sent' or 'stored'.")
    cap = wanted.cap_bytes
    if cap is not None and not CAP_BYTES_MIN <= cap <= CAP_BYTES_MAX:
        raise Invalid(detail=f"cap is between {CAP_BYTES_MIN} and {CAP_BYTES_MAX} bytes.")


def told(read: Conversation, provider: Profile, wanted: Wanted) -> Transcript:
    """The same for a session that was read already. No query."""
    said = entries(read, form=provider.shape.form, open_stay_open=wanted.copy == STORED)
    rendered = _rendered(said.entries, provider, wanted)
    open_calls = [each for each in read.calls if not each.call.is_settled]
    return Transcript(
        version=read.session.version,
        body=rendered.body,
        manifest=_manifest(rendered.manifest, said.answered),
        unresolved=[ids.shown("call", each.call.id) for each in open_calls],
    )


def refusals(read: Conversation, providers: Sequence[Profile]) -> list[Unrenderable | None]:
    """What each provider would refuse of a session, read already, as it is sent; None: nothing.

    What was said is put together once a form, and no manifest is made. No query.
    """
    forms = {each.shape.form for each in providers}
    said = {form: entries(read, form=form).entries for form in forms}
    return [_refusal(said[each.shape.form], each) for each in providers]


def _refusal(said: Sequence[Entry], provider: Profile) -> Unrenderable | None:
    try:
        _rendered(said, provider, Wanted(profile=provider.name))
    except Unrenderable as refusal:
        return refusal
    return None


def _rendered(said: Sequence[Entry], provider: Profile, wanted: Wanted) -> Rendered:
    try:
        return render(
            said, profile=provider, cap_bytes=wanted.cap_bytes, open_calls=wanted.copy == STORED
        )
    except Unrepairable as faults:
        raise unrenderable(provider, faults) from faults


def unrenderable(provider: Profile, faults: Unrepairable) -> Unrenderable:
    """Our error, with every rule that would be broken."""
    errors = [
        {"pointer": f"/{each.at}/{each.part}", "detail": each.text[:300]}
        for each in faults.violations[:20]
    ]
    codes = ", ".join(sorted({each.code for each in faults.violations}))
    return Unrenderable(profile=provider.name, codes=codes, errors=errors)


def _manifest(rendered: Sequence[Shown], answered: Sequence[Answered]) -> list[dict[str, Any]]:
    """One line a call in the order of the conversation; refused ones have no call of ours."""
    by_call = {ids.shown("call", each.fetched.call.id): each for each in answered}
    return [_line(each, by_call.get(each.call)) for each in rendered]


def _line(line: Shown, answered: Answered | None) -> dict[str, Any]:
    shown = answered.shown if answered else None
    return {
        "call": line.call or None,
        "provider_id": line.provider_id,
        "was": line.was,
        "name": line.name,
        "kind": line.delivery,
        "template": (shown.template or None) if shown else None,
        "version": shown.version if shown else None if answered else notices.VERSION,
        "state": answered.fetched.call.state if answered else None,
        "effect": answered.fetched.call.effect if answered else None,
        "at": line.at,
        "digest": line.digest,
        "capped": line.capped,
        "folded": line.folded,
    }


# What one offer holds


def messages_of(items: Sequence[Item], mode: DeliveryMode, provider: Profile) -> Any:
    """The items of an offer as messages to append, in a provider's shape.

    Pairs stand in one reply a step; outputs bear the ids that the model gave, since the history
    that they are appended to has the calls under these.
    """
    return provider.shape.write(lay_out(_appended(items, mode), provider))


def _appended(items: Sequence[Item], mode: DeliveryMode) -> list[Entry]:
    said: list[Entry] = []
    for step in _steps([item for item in items if not item.is_text]):
        parts = [call_part(item.call) for item in step]
        results = [
            result_part(item.call, item.shown, part) for item, part in zip(step, parts, strict=True)
        ]
        if mode is DeliveryMode.APPEND_BOTH:
            said.append(Entry(Role.ASSISTANT, tuple(parts)))
        said.append(Entry(Role.TOOL, tuple(results)))
    texts: list[Part] = [Text(item.shown.text) for item in items if item.is_text]
    return [*said, *(Entry(Role.USER, (text,)) for text in texts)]


def _steps(items: Sequence[Item]) -> list[list[Item]]:
    steps: dict[tuple[object, int], list[Item]] = {}
    for item in items:
        steps.setdefault((item.call.turn_id, item.call.model_step), []).append(item)
    return list(steps.values())
