"""Offers: what the next turn is shown, once, in either mode, and confirmed by its consumer."""

from pathlib import Path

import pytest
from django.db import DatabaseError, InterfaceError

from ledger import calls, conversations, deliveries, entries, offers, sessions
from ledger.errors import NotFound, TurnClosed
from ledger.models import Delivery, Offer, Session, ToolCall, Turn
from ledger.offers import Item, Offered
from ledger.transcripts.neutral import Role
from ledger.vocabulary import DeliveryMode
from tests import builders
from tests.builders import a_call, a_tool, fresh
from tests.cast import Acme
from tests.ledger.saying import a_call_of, by_user, place_of, reply, say
from tests.lines import Died, Line, mortal, until_gone, used
from tests.threads import at_once

BOTH, OUTPUT = DeliveryMode.APPEND_BOTH, DeliveryMode.APPEND_OUTPUT
MODES = list(DeliveryMode)


@pytest.fixture
def session(acme: Acme) -> Session:
    return builders.a_session(acme)


def a_turn_of(session: Session) -> Turn:
    return builders.a_turn(session)


def offered(turn: Turn, mode: DeliveryMode = BOTH, **more: object) -> Offered:
    return offers.offer(place_of(turn), mode=mode, **more)


def confirm(made: Offered) -> Offer:
    assert made.offer is not None
    session = made.offer.session
    return offers.acknowledge(
        workspace_id=session.workspace_id, agent_id=session.agent_id, offer_id=made.offer.id
    )


def told(made: Offered) -> list[tuple[str, str]]:
    return [(str(each.shown.kind), each.shown.template or "result") for each in made.items]


def in_turn(turn: Turn, **more: object) -> dict[str, object]:
    return {"session_id": turn.session_id, "turn_id": turn.id, **more}


def interrupted(turn: Turn) -> Turn:
    return sessions.close_turn(turn=turn, closed_as="interrupted")


@pytest.mark.parametrize("mode", MODES)
def test_a_kept_result_reaches_the_next_turn_once(
    acme: Acme, session: Session, mode: DeliveryMode
) -> None:
    first = a_turn_of(session)
    call = a_call(acme, "succeeded", **in_turn(first))
    interrupted(first)
    second = a_turn_of(session)
    made = offered(second, mode)
    assert [(each.call.id, str(each.shown.kind)) for each in made.items] == [(call.id, "real")]
    confirm(made)
    assert offered(second, mode).items == []
    sessions.close_turn(turn=second, closed_as="answered")
    assert offered(a_turn_of(session), mode).items == []
    assert fresh(call).delivered_at is not None


@pytest.mark.parametrize("mode", MODES)
def test_a_turn_without_anything_kept_has_nothing_to_offer(
    session: Session, mode: DeliveryMode
) -> None:
    made = offered(a_turn_of(session), mode)
    assert (made.offer, made.items) == (None, [])
    assert not Offer.objects.exists()


def test_the_same_offer_is_made_once(acme: Acme, session: Session) -> None:
    turn = a_turn_of(session)
    a_call(acme, "succeeded", **in_turn(turn))
    first, again = offered(turn), offered(turn)
    assert (first.new, again.new) == (True, False)
    assert first.offer == again.offer


def test_what_was_offered_and_not_confirmed_is_offered_again_as_a_replay(
    acme: Acme, session: Session
) -> None:
    first = a_turn_of(session)
    a_call(acme, "succeeded", **in_turn(first))
    offered(first)
    interrupted(first)
    assert told(offered(a_turn_of(session))) == [("replayed", "result")]


def test_an_earlier_open_call_is_closed_with_a_notice(acme: Acme, session: Session) -> None:
    first = a_turn_of(session)
    a_call(acme, "ambiguous", **in_turn(first))
    interrupted(first)
    made = offered(a_turn_of(session))
    assert told(made) == [("notice", "ambiguous")]
    assert [each.shown.template for each in made.lists.unresolved] == ["ambiguous"]


def test_an_open_call_of_the_same_turn_stays_open_unless_it_is_closed(
    acme: Acme, session: Session
) -> None:
    turn = a_turn_of(session)
    a_call(acme, "running", **in_turn(turn))
    assert told(offered(turn)) == []
    assert told(offered(turn, close=True)) == [("notice", "under_way")]


def test_a_notice_nobody_confirmed_is_replaced_by_the_result(acme: Acme, session: Session) -> None:
    first = a_turn_of(session)
    call = a_call(acme, "running", crossed=True, **in_turn(first))
    interrupted(first)
    second = a_turn_of(session)
    assert told(offered(second)) == [("notice", "outlives_turn")]
    builders.settle(call, {"n": 7})
    assert told(offered(second)) == [("real", "result")]


def a_correction(acme: Acme, session: Session) -> tuple[ToolCall, Offered]:
    """A notice was read in the second turn, and the result came after it."""
    first = a_turn_of(session)
    call = a_call(acme, "running", crossed=True, **in_turn(first))
    interrupted(first)
    second = a_turn_of(session)
    confirm(offered(second))
    builders.settle(call, {"n": 7})
    assert told(offered(second)) == []
    interrupted(second)
    return call, offered(a_turn_of(session))


def test_a_result_after_a_notice_that_was_read_follows_as_a_correction_in_the_next_turn(
    acme: Acme, session: Session
) -> None:
    call, made = a_correction(acme, session)
    assert told(made) == [("notice", "correction")]
    assert "left to finish" in made.items[0].shown.text
    assert '{\\"n\\":7}' in made.items[0].shown.text
    confirm(made)
    turn = Turn.objects.get(id=made.offer.turn_id)  # type: ignore[union-attr]
    assert told(offered(turn)) == []
    interrupted(turn)
    assert told(offered(a_turn_of(session))) == []


def test_the_notice_stays_where_it_was_read_and_the_correction_stands_in_its_turn(
    acme: Acme, session: Session
) -> None:
    _, made = a_correction(acme, session)
    said = entries.entries(conversations.read(session)).entries
    assert [str(each.role) for each in said] == ["assistant", "tool", "user"]
    assert said[1].results[0].text.startswith("The turn was stopped while this call ran.")
    assert said[2].text == made.items[0].shown.text


def test_items_come_in_the_order_of_the_reply_whatever_settled_first(
    acme: Acme, session: Session
) -> None:
    turn, tool = a_turn_of(session), a_tool(acme, recovery_class="read_only")
    places = [(1, 1), (0, 1), (1, 0), (0, 0)]
    made = {
        place: a_call(acme, "succeeded", tool=tool, tool_call_id=f"t{place}", model_step=place[0],
                      position=place[1], arguments={"path": str(place)}, **in_turn(turn))
        for place in places
    }  # fmt: skip
    found = [each.call.id for each in offered(turn).items]
    assert found == [made[place].id for place in sorted(places)]


def test_two_consumers_confirm_for_themselves(acme: Acme, session: Session) -> None:
    turn = a_turn_of(session)
    a_call(acme, "succeeded", **in_turn(turn))
    confirm(offered(turn, consumer="voice"))
    assert told(offered(turn, consumer="voice")) == []
    assert told(offered(turn, consumer="text")) == [("real", "result")]


def test_what_an_answered_turn_fetched_is_not_offered_again(acme: Acme, session: Session) -> None:
    turn = a_turn_of(session)
    call = a_call(acme, "succeeded", **in_turn(turn))
    row = calls.read_session(session.id)[0]
    deliveries.write([deliveries.Fetched(call.id, call.workspace_id, call.agent_id.hex,
                                         "succeeded", "happened", row.result.sha256, call.seq)])  # type: ignore[union-attr]  # fmt: skip
    assert told(offered(turn)) == [("real", "result")]
    sessions.close_turn(turn=turn, closed_as="answered")
    assert told(offered(a_turn_of(session))) == []


def test_a_closed_turn_is_offered_nothing(acme: Acme, session: Session) -> None:
    turn = a_turn_of(session)
    interrupted(turn)
    with pytest.raises(TurnClosed):
        offered(turn)


def test_an_acknowledgement_of_another_agent_reads_as_absent(acme: Acme, session: Session) -> None:
    turn = a_turn_of(session)
    a_call(acme, "succeeded", **in_turn(turn))
    made = offered(turn)
    with pytest.raises(NotFound):
        offers.acknowledge(workspace_id=acme.workspace.id, agent_id=acme.ben.id,
                           offer_id=made.offer.id)  # type: ignore[union-attr]  # fmt: skip


def test_a_reply_is_told_with_its_calls_and_what_was_refused(acme: Acme, session: Session) -> None:
    turn = a_turn_of(session)
    mail = a_tool(acme, "mail").name
    say(turn, by_user("Two mails."))
    reply(turn, a_call_of(mail, "a", {"path": "a"}), a_call_of("nobody", "b"))
    said = entries.entries(conversations.read(session)).entries
    assert [str(each.role) for each in said] == ["user", "assistant", "tool"]
    assert [each.id for each in said[1].calls] == ["a", "b"]
    assert [each.answers for each in said[2].results] == ["a", "b"]
    assert said[2].role is Role.TOOL


# Races


@pytest.mark.django_db(transaction=True)
def test_two_offers_at_once_are_one(acme: Acme, session: Session) -> None:
    turn = a_turn_of(session)
    a_call(acme, "succeeded", **in_turn(turn))
    made = at_once([lambda: offered(turn)] * 2)
    assert len({each.offer.id for each in made}) == 1  # type: ignore[union-attr]
    assert Offer.objects.count() == Delivery.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_acknowledgement_twice_at_once_is_one(acme: Acme, session: Session) -> None:
    turn = a_turn_of(session)
    a_call(acme, "succeeded", **in_turn(turn))
    made = offered(turn)
    answers = at_once([lambda: confirm(made).acknowledged_at] * 2)
    assert len(set(answers)) == 1
    assert isinstance(made.items[0], Item)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("answered", [False, True])
def test_an_acknowledgement_whose_client_dies_at_any_statement_is_whole_or_not_there(
    acme: Acme, session: Session, tmp_path: Path, answered: bool
) -> None:
    turn = a_turn_of(session)
    call = a_call(acme, "succeeded", **in_turn(turn))
    made = offered(turn)
    line = Line(tmp_path)
    try:
        for at in range(1, 12):
            client = line.connect()
            pid = line.pid
            line.cut(at, answered=answered)
            try:
                with used(mortal(client)):
                    confirm(made)
            except (Died, DatabaseError, InterfaceError):
                pass
            finally:
                client.close()
                until_gone(pid)
            offer, row = Offer.objects.get(), Delivery.objects.get()
            assert offer.acknowledged_at == row.acknowledged_at
            assert (offer.acknowledged_at is None) == (fresh(call).delivered_at is None)
        confirm(made)
        assert offered(turn).items == []
    finally:
        line.__exit__()
