"""Sessions with a story, for their pages: what was said, called, shown and interrupted."""

from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from ledger import bindings, compactions, offers, sessions
from ledger.bindings import Stated
from ledger.compactions import Wanted
from ledger.errors import BindingDrift
from ledger.models import Session, ToolCall, Turn
from ledger.transcripts.neutral import Text
from ledger.vocabulary import DeliveryMode
from tests import builders
from tests.cast import Acme
from tests.ledger.saying import a_call_of, by_user, place_of, reply, say

HOSTILE = "<script>alert(1)</script>\u202egnp"
SECRET = "sk-abcdefghijklmnopqrstuvwxyz012345"


@dataclass(frozen=True)
class Story:
    """One session: a turn that was interrupted, compacted away, and an open one after it."""

    session: Session
    first: Turn
    second: Turn
    settled: ToolCall
    ambiguous: ToolCall
    parked: ToolCall


def recorded(turn: Turn, tool: str, *said: str, id_: str = "toolu_1", **more: object) -> UUID:
    """A reply with a text and one call of a tool; the id of the call."""
    parts = [Text(each) for each in said]
    arguments = {"customer": "C-1042", "token": SECRET}
    done = reply(turn, *parts, a_call_of(tool, id_, arguments), **more)
    return done.calls[0].call_id


def walked(call_id: UUID, to: str) -> ToolCall:
    builders.WALKS[builders.CallState(to)](builders.fresh(call_id))
    return builders.fresh(call_id)


def a_story(acme: Acme) -> Story:
    """Ada closes the month; the user interrupts; the next turn is shown what was kept."""
    tools = {
        name: builders.a_tool(acme, name, recovery_class).name
        for name, recovery_class in (
            ("lookup_order", "read_only"), ("send_invoice", "side_effect"),
            ("render_clip", "long_running"),
        )
    }  # fmt: skip
    session = builders.a_session(
        acme, label="Close the month", working_directory="/srv/books", host="box-1", model="m-1"
    )
    first = builders.a_turn(session)
    say(first, by_user(f"Close the month for Acme. {HOSTILE} key {SECRET}"))
    settled = walked(
        recorded(first, tools["lookup_order"], "I look it up.", model_step=0), "succeeded"
    )
    ambiguous = walked(
        recorded(first, tools["send_invoice"], id_="toolu_2", model_step=1), "ambiguous"
    )
    sessions.close_turn(turn=first, closed_as="interrupted")
    second = builders.a_turn(session)
    made = offers.offer(place_of(second), mode=DeliveryMode.APPEND_BOTH)
    assert made.offer is not None
    offers.acknowledge(
        workspace_id=session.workspace_id, agent_id=session.agent_id, offer_id=made.offer.id
    )
    say(second, by_user("Then render the clip."))
    parked = walked(recorded(second, tools["render_clip"], id_="toolu_3", model_step=0), "parked")
    session.refresh_from_db()
    return Story(session, first, second, settled, ambiguous, parked)


def compacted(story: Story) -> None:
    """A summary of the first turn takes its place."""
    session = story.session
    session.refresh_from_db()
    prepared = compactions.prepare(session=session)
    compactions.commit(
        workspace_id=session.workspace_id,
        agent_id=session.agent_id,
        session_id=session.id,
        wanted=Wanted(
            token=prepared.token, cut=prepared.cuts[0].place, summary="The order is paid."
        ),
    )


def drifted(story: Story) -> None:
    """Somebody comes back to the session from another directory, and is refused."""
    session = story.session
    with suppress(BindingDrift):
        bindings.come_back(
            session_id=session.id, workspace_id=session.workspace_id, agent_id=session.agent_id,
            stated=Stated(epoch=session.epoch, working_directory="/srv/elsewhere"),
        )  # fmt: skip
