"""A history with talk in it: prompts, replies with calls, offers and what was confirmed of them.

After every act the session is rendered for every provider: whatever was committed by then, a break
in the middle of a verb included, is a prefix of its events (R91).
"""

from random import Random
from typing import Any
from uuid import UUID

from ledger import conversations, messages, offers, rendering, replies, sessions
from ledger.errors import LedgerError
from ledger.messages import Place
from ledger.models import Offer, ToolCall, Turn
from ledger.rendering import Wanted
from ledger.replies import Heard
from ledger.transcripts.neutral import Call, Entry, Role, Text
from ledger.transcripts.profiles import profiles
from ledger.transcripts.validation import check
from ledger.vocabulary import DeliveryMode
from tests import builders
from tests.properties.history import CALLS, CLASSES, VARIANTS, History, Unheard
from tests.properties.world import Story

TALK = ("says", "replies", "replies", "offers", "confirms")
IDS = ("toolu_1", "toolu_2", "call:3", "", "x" * 60)
FORMAT = "neutral"


class Conversing(History):
    """History whose agent talks, in turns that it may end as it likes."""

    def goes_on(self, chance: Random) -> str:
        if chance.random() < 0.4:
            act = chance.choice(TALK)
            getattr(self, act)(chance)
            self.agrees()
        else:
            act = super().goes_on(chance)
        self.renders()
        return act

    def renders(self) -> None:
        """What would be given out passes the rules of its provider, for all of them."""
        read = conversations.read(self.session)
        for name, provider in profiles().items():
            found = rendering.told(read, provider, Wanted(profile=name))
            assert check(provider.shape.read(found.body), provider) == []
            shown = {line["call"] for line in found.manifest if line["call"]}
            assert shown == {f"call_{each.call.id.hex}" for each in read.calls}

    def place(self) -> Place:
        return Place(
            workspace_id=self.acme.workspace.id, agent_id=self.acme.ada.id,
            session_id=self.session.id, turn_id=self.turn.id,
        )  # fmt: skip

    def _tried(self, chance: Random, verb: Any) -> Any:
        """Run a verb; where nobody heard the answer, it is asked again and says the same."""
        try:
            return self._do(chance, verb)
        except Unheard:
            return self._again(verb)
        except LedgerError:
            return None

    def _again(self, verb: Any) -> Any:
        try:
            return verb()
        except LedgerError:
            return None

    # Talk

    def says(self, chance: Random) -> None:
        said = Entry(Role.USER, (Text(chance.choice(["Go on.", "Stop that.", "é 🙂"])),))
        key = f"p{chance.random()}"
        self._tried(
            chance, lambda: messages.say(self.place(), format=FORMAT, entries=[said], key=key)
        )

    def replies(self, chance: Random) -> None:
        if len(self.world.stories) >= 2 * CALLS:
            return
        calls = [self._call(chance) for _ in range(chance.randint(0, 3))]
        words = (Text("So."),) if chance.random() < 0.7 or not calls else ()
        entry = Entry(Role.ASSISTANT, (*words, *calls), failed=chance.random() < 0.1)
        heard = Heard(format=FORMAT, entries=[entry], key=f"r{chance.random()}")
        answer = self._tried(chance, lambda: replies.reply(self.place(), heard))
        for recorded in answer.calls.values() if answer else ():
            self._know(recorded.call_id)

    def _call(self, chance: Random) -> Call:
        tool = chance.choice([*[each.name for each in self.tools], "nobody"])
        arguments = None if chance.random() < 0.1 else {"path": chance.choice("abc")}
        return Call(chance.choice(IDS) or None, tool, arguments, unparsed='{"pa')

    def _know(self, call_id: UUID) -> None:
        """Tell the world of a reply's call, and that its place in the reply is taken."""
        call = ToolCall.objects.get(id=call_id)
        number = [each.name for each in self.tools].index(call.tool)
        self.world.stories.setdefault(call_id, Story(CLASSES[number // len(VARIANTS)]))
        place = (call.session_id, call.turn_id, call.model_step, call.position)
        self.names[("place", call.agent_id, *place, call.tool_call_id)] = call_id

    def submits(self, chance: Random) -> None:
        """Calls without a reply, of the session or of its turn, as agents that only submit do."""
        if len(self.world.stories) >= CALLS:
            return
        [number] = chance.choices(range(len(self.tools)))
        place = {"session_id": self.session.id, "tool_call_id": chance.choice(IDS),
                 "position": chance.randint(0, 2), "model_step": chance.randint(0, 3)}  # fmt: skip
        turn = {"turn_id": self.turn.id} if chance.random() < 0.8 else {}
        self._submit(chance, number, place | turn)
        self.works(chance)

    def ends_or_opens_the_turn(self, chance: Random) -> None:
        self.turn = Turn.objects.get(id=self.turn.id)
        if self.turn.closed_at is None:
            closed_as = chance.choice(["interrupted", "stopped"])
            self.turn = sessions.close_turn(turn=self.turn, closed_as=closed_as)
        else:
            self.turn = builders.a_turn(self.session)

    # Deliveries

    def offers(self, chance: Random) -> None:
        mode, close = chance.choice(list(DeliveryMode)), chance.random() < 0.5
        self._tried(chance, lambda: offers.offer(self.place(), mode=mode, close=close))

    def confirms(self, chance: Random) -> None:
        waiting = list(Offer.objects.filter(acknowledged_at=None).order_by("offered_at"))
        if waiting:
            owner = {"workspace_id": self.acme.workspace.id, "agent_id": self.acme.ada.id}
            offer_id = chance.choice(waiting).id
            self._tried(chance, lambda: offers.acknowledge(**owner, offer_id=offer_id))
