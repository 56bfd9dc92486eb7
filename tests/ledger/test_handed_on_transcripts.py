"""What models read of calls that were carried over or handed on: each result once, at its owner."""

import json

import pytest

from ledger import carry_over, conversations, entries, ids, offers, rendering, sessions
from ledger.bindings import Stated
from ledger.models import Session, Turn
from ledger.rendering import Wanted
from ledger.transcripts.neutral import Role
from ledger.transcripts.profiles import profiles
from ledger.vocabulary import DeliveryMode
from tests import builders
from tests.cast import Acme
from tests.ledger.saying import place_of
from tests.ledger.test_compactions import a_call, a_history, compacted, said
from tests.ledger.test_handoffs import bens, offered, taken
from tests.ledger.test_offers import confirm
from tests.ledger.test_offers import offered as shown_to

pytestmark = pytest.mark.django_db
BOTH = DeliveryMode.APPEND_BOTH


def told(session: Session) -> list[tuple[Role, str]]:
    found = entries.entries(conversations.read(session)).entries
    return [(each.role, "".join(part.text for part in each.parts if hasattr(part, "text")))
            for each in found]  # fmt: skip


def renders_for_everybody(session: Session) -> None:
    """Raises Unrenderable where a provider would refuse it."""
    for name in profiles():
        rendering.transcript(session, Wanted(profile=name))


def with_a_prompt(session: Session, epoch: int | None = None) -> Turn:
    turn = builders.a_turn(session, stated=Stated(epoch=epoch))
    said(turn, 0)
    return turn


def test_a_compacted_session_begins_with_its_open_calls_and_the_summary(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "ambiguous", 0)
    row = compacted(session, summary="They greeted.")
    said(turn, 2)
    heading, summary = told(session)[:2]
    assert heading == (Role.USER, carry_over.block(row.carry_over))
    assert summary == (Role.ASSISTANT, "They greeted.")
    renders_for_everybody(session)


def test_the_sender_is_told_that_its_call_was_handed_over(acme: Acme) -> None:
    session, turn = a_history(acme)
    call, mine = a_call(acme, turn, "running", 0, crossed=True), bens(acme)
    taken(offered(session), mine)
    builders.settle(call, {"sent": "a secret of the new owner"})
    line = f"handed over to another session, {ids.shown('session', mine.id)}"
    assert any(line in text for _, text in told(session))
    assert "a secret" not in json.dumps(
        rendering.transcript(session, Wanted(profile="anthropic")).body
    )
    later = with_a_prompt(session, epoch=2)
    assert offers.offer(place_of(later, epoch=2), mode=BOTH).items == []
    renders_for_everybody(session)


def test_a_sender_that_had_read_otherwise_is_corrected_once(acme: Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0)
    confirm(shown_to(turn, close=True))
    taken(offered(session), bens(acme))
    later = with_a_prompt(session, epoch=2)
    made = offers.offer(place_of(later, epoch=2), mode=BOTH)
    assert [(each.call.id, each.shown.template) for each in made.items] == [(call.id, "correction")]
    assert "handed over" in made.items[0].shown.text
    assert made.offer is not None
    offers.acknowledge(
        workspace_id=session.workspace_id, agent_id=session.agent_id, offer_id=made.offer.id,
        epoch=2,
    )  # fmt: skip
    assert offers.offer(place_of(later, epoch=2), mode=BOTH).items == []


@pytest.mark.parametrize("mode", list(DeliveryMode))
def test_the_receiver_is_shown_the_call_and_its_result_once(acme: Acme, mode: DeliveryMode) -> None:
    session, turn = a_history(acme)
    call, mine = a_call(acme, turn, "running", 0, crossed=True), bens(acme)
    taken(offered(session), mine)
    renders_for_everybody(mine)
    first = with_a_prompt(mine)
    made = shown_to(first, mode)
    assert [(each.call.id, each.shown.template) for each in made.items] == [(call.id, "under_way")]
    confirm(made)
    builders.settle(call, {"sent": True})
    sessions.close_turn(turn=first, closed_as="answered")
    second = with_a_prompt(mine)
    made = shown_to(second, mode)
    assert [(each.call.id, each.shown.template) for each in made.items] == [(call.id, "correction")]
    confirm(made)
    assert shown_to(second, mode).items == []
    renders_for_everybody(mine)


def test_a_result_that_came_before_any_offer_is_shown_as_it_is(acme: Acme) -> None:
    session, turn = a_history(acme)
    call, mine = a_call(acme, turn, "running", 0, crossed=True), bens(acme)
    taken(offered(session), mine)
    builders.settle(call, {"sent": True})
    turn = with_a_prompt(mine)
    made = shown_to(turn)
    assert [str(each.shown.kind) for each in made.items] == ["real"]
    confirm(made)
    assert shown_to(turn).items == []
    texts = [text for role, text in told(mine) if role is Role.TOOL]
    assert texts == ['{"sent":true}']
    renders_for_everybody(mine)
