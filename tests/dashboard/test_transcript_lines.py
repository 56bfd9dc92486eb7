"""A call in its place: what the model read of it, what is due, whose it is, what is folded."""

from contextlib import suppress
from dataclasses import replace

import pytest

from dashboard import session_standing, sessions, transcripts
from dashboard.transcript_lines import CORRECTED, CallShown, Said, TurnShown
from ledger import acceptances, handoffs, keys, offers
from ledger import sessions as ledger_sessions
from ledger.errors import FenceLost
from ledger.handoffs import Receiver
from ledger.models import Offer, Session, ToolCall
from ledger.vocabulary import DeliveryMode
from tests import builders
from tests.cast import Acme
from tests.dashboard.conversations import Story, a_story
from tests.ledger.saying import place_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def story(acme: Acme) -> Story:
    return a_story(acme)


def turns(session: Session) -> list[TurnShown]:
    return transcripts.of(session).turns


def said(session: Session) -> list[Said]:
    return [line for turn in turns(session) for line in turn.lines if isinstance(line, Said)]


def shown(call: ToolCall) -> CallShown:
    """A call as its session's page shows it."""
    session = Session.objects.get(id=call.session_id)
    return next(each for line in said(session) for each in line.calls if each.call.id == call.id)


def undelivered(story: Story) -> int:
    return sessions.figures_of([story.session.id])[story.session.id].undelivered


def settle(call: ToolCall) -> None:
    """Its result comes late, and is adopted."""
    with suppress(FenceLost):
        builders.settle(call, {"sent": 3})
    builders.fire()
    assert builders.fresh(call).state == "succeeded"


def offered(story: Story) -> Offer:
    """What the next turn is offered."""
    ledger_sessions.close_turn(turn=story.second, closed_as="interrupted")
    made = offers.offer(place_of(builders.a_turn(story.session)), mode=DeliveryMode.APPEND_BOTH)
    assert made.offer is not None
    return made.offer


def read(offer: Offer) -> None:
    offers.acknowledge(
        workspace_id=offer.workspace_id, agent_id=offer.session.agent_id, offer_id=offer.id
    )


# What the model read


def test_an_outcome_is_undelivered_while_the_model_read_a_notice_of_it_only(story: Story) -> None:
    assert (shown(story.ambiguous).saw.text, undelivered(story)) == ("notice, read", 0)
    settle(story.ambiguous)
    each = shown(story.ambiguous)
    assert (each.saw.text, each.saw.family, each.saw.shape, each.source, undelivered(story)) == (
        "outcome not read yet", "person", "state-recorded", "what the model read last", 1,
    )  # fmt: skip


def test_beside_a_correction_that_was_read_the_text_is_what_was_read_first(story: Story) -> None:
    settle(story.ambiguous)
    each = shown(story.ambiguous)
    corrected = replace(each.reads[0], kind=CORRECTED)
    assert replace(each, reads=[*each.reads, corrected]).source == "what the model read first"


def test_an_offer_that_nobody_confirmed_leaves_the_outcome_undelivered(story: Story) -> None:
    settle(story.ambiguous)
    offered(story)
    assert (shown(story.ambiguous).saw.text, undelivered(story)) == ("outcome not read yet", 1)


def test_an_outcome_is_read_once_its_correction_is(story: Story) -> None:
    settle(story.ambiguous)
    read(offered(story))
    saw = shown(story.ambiguous).saw
    assert (saw.text, saw.shape, undelivered(story)) == ("correction, read", "mark-shown", 0)


def test_a_result_that_was_read_is_read_with_the_eye_beside_it(story: Story) -> None:
    saw = shown(story.settled).saw
    assert (saw.text, saw.family, saw.shape) == ("result, read", "plain", "mark-shown")


def test_of_an_open_call_nobody_was_told_of_the_text_is_what_would_be_told(story: Story) -> None:
    each = shown(story.parked)
    assert (each.saw.text, each.source) == ("not shown yet", "would be told")
    offered(story)
    each = shown(story.parked)
    assert (each.saw.text, each.saw.shape) == ("notice, not read yet", "state-recorded")
    assert each.source == "notice"


def test_a_settled_call_that_was_never_offered_is_undelivered(acme: Acme, story: Story) -> None:
    call = builders.a_call(
        acme, "succeeded", session_id=story.session.id, turn_id=story.second.id, model_step=2
    )
    assert (shown(call).saw.text, shown(call).saw.family) == ("undelivered", "person")
    assert undelivered(story) == 1


# Whose it is


def test_a_call_that_was_handed_over_is_unresolved_here_no_more(acme: Acme, story: Story) -> None:
    place = {"working_directory": "/srv/books", "host": "box-1", "model": "m-1"}
    row, _ = handoffs.offer(
        workspace_id=acme.workspace.id, agent_id=acme.ada.id, session_id=story.session.id,
        wanted=handoffs.Offer(agent="ben", grounds="Ben knows the books.", epoch=1),
    )  # fmt: skip
    bens = builders.a_session(acme, agent=acme.ben, **place)
    acceptances.accept(
        hand_off_id=row.id,
        by=Receiver(workspace_id=acme.workspace.id, agent_id=acme.ben.id, session_id=bens.id,
                    scopes=frozenset(keys.AGENT_SCOPES), epoch=1),
    )  # fmt: skip
    each = shown(story.ambiguous)
    assert (each.is_open, each.is_unresolved, each.owner) == (True, False, bens.id)
    assert session_standing.of(story.session).open == []
    settle(story.ambiguous)
    assert not shown(story.ambiguous).is_due
    assert undelivered(story) == 0


def test_a_twin_that_was_answered_never_ran(acme: Acme, story: Story) -> None:
    place = {"session_id": story.session.id, "turn_id": story.second.id}
    tool = builders.a_tool(acme, "send_mail", "side_effect")
    first = builders.a_call(acme, "succeeded", tool=tool, model_step=2, **place)
    again = builders.a_submit(acme, tool.name, tool_call_id="toolu_9", model_step=3, **place)
    twin = builders.fresh(builders.answer_to(again).call_id)
    assert twin.twin_of_id == first.id
    assert (shown(first).is_settled_twin, shown(twin).is_settled_twin) == (False, True)


# What is folded


@pytest.mark.parametrize(
    ("state", "number", "in_sight", "folded"),
    [("succeeded", 3, 3, 0), ("succeeded", 4, 2, 2), ("running", 6, 6, 0)],
)
def test_neighbours_that_look_alike_are_folded_and_unresolved_ones_never(
    acme: Acme, state: str, number: int, in_sight: int, folded: int
) -> None:
    session = builders.a_session(acme)
    turn, tool = builders.a_turn(session), builders.a_tool(acme)
    for n in range(number):
        builders.a_call(
            acme, state, tool=tool, session_id=session.id, turn_id=turn.id, position=n,
            tool_call_id=f"toolu_{n}", arguments={"n": n},
        )  # fmt: skip
    (line,) = said(session)
    assert sum(len(run.in_sight) for run in line.runs) == in_sight
    assert sum(len(run.folded) for run in line.runs) == folded
