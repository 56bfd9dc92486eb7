"""A conversation of an agent, as its process would record it: what was said, called and shown."""

from typing import Any
from uuid import UUID

from demo.house import House
from ledger import calls, deliveries, messages, offers, outcomes, replies, sessions
from ledger.deliveries import Fetched
from ledger.messages import Place
from ledger.models import Attempt, Session, ToolCall, Turn
from ledger.replies import Heard
from ledger.transcripts.neutral import Call, Entry, Role, Text
from ledger.vocabulary import CallState, DeliveryMode

FORMAT = "neutral"


class Talk:
    """One session of one agent: `asks` begins a turn, `says` and `calls` are its model's."""

    def __init__(self, house: House, agent: str, label: str, **binding: str) -> None:
        self.house = house
        self.agent = house.agent(agent)
        self.session: Session
        self.session, _ = sessions.open_session(
            workspace_id=house.workspace.id, agent_id=self.agent.id, label=label, **binding
        )
        self.turn: Turn | None = None
        self._called = 0

    def asks(self, text: str) -> None:
        """A user asks: the turn before ends, answered or, with calls still open, interrupted."""
        self.ends()
        self.turn, _ = sessions.open_turn(session=self.session)
        self._say(Entry(Role.USER, (Text(text),)))

    def ends(self) -> None:
        """Close the open turn, if there is one."""
        if self.turn is None:
            return
        left = ToolCall.objects.open().filter(turn=self.turn).exists()
        sessions.close_turn(turn=self.turn, closed_as="interrupted" if left else "answered")
        self.turn = None

    def says(self, text: str) -> None:
        """The model replies without a call."""
        self._reply(Text(text))

    def calls(self, tool: str, text: str = "", /, **arguments: Any) -> UUID:
        """The model replies with one call of a tool; its id."""
        return self.calls_many(tool, text, [arguments])[0]

    def calls_many(self, tool: str, text: str, each: list[dict[str, Any]]) -> list[UUID]:
        """The model replies with several calls at once."""
        parts = [self._call(tool, arguments) for arguments in each]
        said = self._reply(*([Text(text)] if text else []), *parts)
        return [recorded.call_id for _, recorded in sorted(said.calls.items())]

    def shows(self, *, read: bool = True) -> None:
        """The outcomes that are due are handed to the model; unless `read`, it has not said so."""
        made = offers.offer(self.place, mode=DeliveryMode.APPEND_BOTH)
        if read and made.offer is not None:
            offers.acknowledge(
                workspace_id=self.session.workspace_id,
                agent_id=self.agent.id,
                offer_id=made.offer.id,
            )

    @property
    def place(self) -> Place:
        assert self.turn is not None  # noqa: S101 a scene asks first
        return Place(
            workspace_id=self.session.workspace_id,
            agent_id=self.agent.id,
            session_id=self.session.id,
            turn_id=self.turn.id,
        )

    def _call(self, tool: str, arguments: dict[str, Any]) -> Call:
        self._called += 1
        return Call(f"toolu_{self.session.id.hex[-6:]}_{self._called:02d}", tool, arguments)

    def _say(self, entry: Entry) -> None:
        messages.say(self.place, format=FORMAT, entries=[entry])

    def _reply(self, *parts: Text | Call) -> replies.Replied:
        entry = Entry(Role.ASSISTANT, tuple(parts))
        return replies.reply(self.place, Heard(format=FORMAT, entries=[entry]))


def fetched(call_id: UUID) -> None:
    """The agent of a settled call reads it through the API, and that is kept."""
    call = ToolCall.objects.get(id=call_id)
    (found,) = calls.read_many([(calls.Reader(call.workspace_id, call.agent_id), call_id)])
    assert not isinstance(found, Exception)  # noqa: S101 it is there
    row = Fetched(
        call.id, call.workspace_id, call.agent_id.hex, str(call.state), str(call.effect),
        outcomes.digest_of(found), call.seq,
    )  # fmt: skip
    deliveries.write([row])


# What a scene waits for


def settled(*call_ids: UUID) -> bool:
    """Whether these calls are settled."""
    return not ToolCall.objects.open().filter(id__in=call_ids).exists()


def crossed(call_id: UUID) -> bool:
    return ToolCall.objects.filter(id=call_id, crossed_at__isnull=False).exists()


def stands(state: str, *call_ids: UUID) -> bool:
    """Whether these calls are in a state."""
    found = ToolCall.objects.filter(id__in=call_ids, state=CallState(state))
    return found.count() == len(call_ids)


def worker_of(call_id: UUID) -> Any:
    """The worker that executes a call."""
    return Attempt.objects.get(call=call_id, ended_at__isnull=True).worker
