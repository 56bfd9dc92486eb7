"""What people say in a turn, and the rows of messages (R89, R90; transcripts, part e).

A result is no message: one that an agent sends back belongs to a call that the ledger knows, and
the call has its result already; one for an unknown call is refused, and nothing is stored (R81).
The reply of a model is recorded with its calls, in `ledger/replies.py`.

Locks: the session, whose version each message raises; who appends to a turn holds it, so that
positions have no gaps and nobody closes the turn meanwhile.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F, Max

from ledger import bindings, ids, strictjson, turn_events
from ledger.errors import Invalid, KeyReused, NotFound, ResultWithoutCall, TurnClosed
from ledger.models import Message, Result, Session, ToolCall, Turn
from ledger.transactions import repeatable
from ledger.transcripts import stored
from ledger.transcripts.neutral import Entry, Role
from ledger.transcripts.neutral import Result as Answer
from ledger.vocabulary import Actor, TurnEventKind

ENTRIES_MAX = 100
KEY_CHARACTERS_MAX = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A turn of an agent's own session: where something is said, and under which epoch.

    No epoch means the first (decision 0028).
    """

    workspace_id: UUID
    agent_id: UUID
    session_id: UUID
    turn_id: UUID
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Ignored:
    """A result that came for a call of the ledger: kept out, since results come from attempts.

    `equal` says whether it is the recorded one.
    """

    tool_call_id: str
    call_id: UUID
    equal: bool


@dataclass(frozen=True, slots=True)
class Said:
    """The messages of one request in order; `new` is False when an equal request made them.

    `repeated` are those of a person's whose words stand in this turn already, under no key.
    """

    messages: tuple[Message, ...]
    new: bool
    repeated: tuple[Message, ...] = ()
    ignored: tuple[Ignored, ...] = ()


@repeatable
def say(place: Place, *, format: str, entries: Sequence[Entry], key: str = "") -> Said:
    """Append what people said to a turn: texts of the roles user and system.

    With a key, the same request gives the same messages. Raises NotFound, TurnClosed,
    KeyReused, ResultWithoutCall, and Invalid for a reply, which has a verb of its own.
    """
    session, turn = held(place)
    return _say(session, turn, format, entries, key)


def prompt(
    session: Session, turn: Turn, *, format: str, entries: Sequence[Entry], key: str = ""
) -> Said:
    """As `say`, in the transaction of who opens the turn, and holds the session's lock."""
    return _say(session, turn, format, entries, key)


def _say(session: Session, turn: Turn, format: str, entries: Sequence[Entry], key: str) -> Said:
    wanted = _wanted(entries)
    digests = [digest_of(each.role, format, stored.written(each.parts)) for each in wanted]
    known = _known(turn, digests, key)
    if known:
        return Said(known, new=False)
    if not turn.takes_calls:
        raise TurnClosed()
    ignored = _without_place(session, turn, entries)
    repeated = {each.sha256 for each in turn.messages.filter(sha256__in=digests)}
    messages = tuple(
        append(
            turn,
            role=each.role,
            format=format,
            parts=stored.written(each.parts),
            sha256=sha256,
            key=_key_of(key, n),
        )
        for n, (each, sha256) in enumerate(zip(wanted, digests, strict=True))
    )
    if messages:
        raise_version(session)
    again = () if key else tuple(each for each in messages if each.sha256 in repeated)
    _note(turn, session, again)
    return Said(messages, new=True, repeated=again, ignored=ignored)


def begins_with(turn: Turn, format: str, entries: Sequence[Entry]) -> bool:
    """Whether a turn was opened with these very words."""
    wanted = [digest_of(each.role, format, stored.written(each.parts)) for each in _wanted(entries)]
    first = turn.messages.order_by("position").values_list("sha256", flat=True)
    return list(first[: len(wanted)]) == wanted


def held(place: Place) -> tuple[Session, Turn]:
    """The session under its row's lock, and the turn.

    Raises NotFound for absent and foreign, StaleEpoch where the session was bound anew.
    """
    session = bindings.hold(
        session_id=place.session_id, workspace_id=place.workspace_id, agent_id=place.agent_id
    )
    bindings.check_epoch(session, place.epoch)
    turn = Turn.objects.filter(session=session, id=place.turn_id).first()
    if turn is None:
        raise NotFound(noun="turn")
    return session, turn


def raise_version(session: Session) -> None:
    """Count one change of the transcript; who holds an older version is told so."""
    Session.objects.filter(id=session.id).update(version=F("version") + 1)


def append(
    turn: Turn,
    *,
    role: str,
    format: str,
    parts: Sequence[stored.Written],
    sha256: str,
    **columns: Any,
) -> Message:
    """Write one message behind the others of its turn, under the session's lock."""
    last = Message.objects.filter(turn=turn).aggregate(last=Max("position"))["last"]
    return Message.objects.create(
        workspace_id=turn.workspace_id,
        session_id=turn.session_id,
        turn=turn,
        position=0 if last is None else last + 1,
        role=str(role),
        format=format,
        parts=json.dumps(parts, ensure_ascii=False, separators=(",", ":")),
        sha256=sha256,
        **columns,
    )


def digest_of(role: str, format: str, whole: Any) -> str:
    """What makes two messages the same: who speaks, in which format, and every part of it."""
    return hashlib.sha256(strictjson.canonical([str(role), format, whole])).hexdigest()


def _wanted(entries: Sequence[Entry]) -> list[Entry]:
    """The entries that become messages; raises Invalid for what is none of a person's."""
    if not 0 < len(entries) <= ENTRIES_MAX:
        raise Invalid(detail=f"Send between 1 and {ENTRIES_MAX} messages at once.")
    for each in entries:
        if each.role is Role.ASSISTANT or each.calls:
            raise Invalid(
                detail="A message of a model, or with a call, is a reply. Send it to the replies "
                "of the turn, so that it is recorded with its calls."
            )
        if each.screen_only:
            raise Invalid(detail="A message for the screen only is not kept. Leave it out.")
    # What is left of a message that held results is what was said beside them.
    texts = (_without_results(each) for each in entries)
    return [each for each in texts if each.parts]


def _without_results(entry: Entry) -> Entry:
    parts = tuple(part for part in entry.parts if not isinstance(part, Answer))
    role = Role.USER if entry.role is Role.TOOL else entry.role
    return Entry(role, parts, at=entry.at)


def _key_of(key: str, n: int) -> str:
    """The key of the n-th message of a request; the first has the request's own."""
    named = f"{key}#{n}" if key and n else key
    if len(named) > KEY_CHARACTERS_MAX:
        raise Invalid(detail="The key is too long for so many messages. Shorten it.")
    return named


def _known(turn: Turn, digests: Sequence[str], key: str) -> tuple[Message, ...]:
    """The messages that an equal request made under this key. Raises KeyReused."""
    if not key:
        return ()
    keys = [_key_of(key, n) for n in range(ENTRIES_MAX)]
    found = tuple(turn.messages.filter(key__in=keys).order_by("position"))
    if found and [each.sha256 for each in found] != list(digests):
        raise KeyReused(earlier="other messages of this turn")
    return found


def _without_place(session: Session, turn: Turn, entries: Sequence[Entry]) -> tuple[Ignored, ...]:
    """The results among the entries: looked up, noted, and left out. Raises ResultWithoutCall."""
    answers = [each for entry in entries for each in entry.results]
    ignored = tuple(_ignored(session, each) for each in answers)
    if ignored:
        turn_events.note(
            turn,
            TurnEventKind.IGNORED,
            by=Actor.AGENT,
            by_id=session.agent_id.hex,
            calls=[
                {"call": ids.shown("call", each.call_id), "equal": each.equal} for each in ignored
            ],
        )
    return ignored


def _ignored(session: Session, answer: Answer) -> Ignored:
    # Several providers begin their numbering anew, so the latest call of the name is meant.
    call = (
        ToolCall.objects.filter(session=session, tool_call_id=answer.answers or "")
        .order_by("-recorded_at")
        .first()
        if answer.answers
        else None
    )
    if call is None:
        raise ResultWithoutCall(tool_call_id=(answer.answers or "")[:100])
    return Ignored(answer.answers or "", call.id, _says_the_same(call, answer))


def _says_the_same(call: ToolCall, answer: Answer) -> bool:
    recorded = Result.objects.filter(call=call).first()
    if recorded is None:
        return False
    body = bytes(recorded.body).decode("utf-8", "replace")
    return answer.text == body or _json(answer.text) == _json(body) != NO_JSON


NO_JSON = object()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return NO_JSON


def _note(turn: Turn, session: Session, again: Sequence[Message]) -> None:
    if again:
        turn_events.note(
            turn,
            TurnEventKind.REPEATED,
            by=Actor.AGENT,
            by_id=session.agent_id.hex,
            messages=turn_events.shown("message", [each.id for each in again]),
        )
