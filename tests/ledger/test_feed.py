"""The feed of a session: every event once, whatever the order in which transactions end."""

import threading
from uuid import UUID

import pytest
from django.db import connection, transaction

from ledger import attempts, feed, sessions, settlements
from ledger.feed import Place, Read
from ledger.models import Session, Turn
from tests import builders, waits
from tests.builders import a_call, a_turn, claim_of
from tests.cast import Acme
from tests.threads import with_own_connection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(acme: Acme) -> Session:
    return builders.a_session(acme)


@pytest.fixture
def turn(session: Session) -> Turn:
    return a_turn(session)


def told(found: Read) -> list[tuple[str, str | None]]:
    return [(each.kind, each.facts.get("state")) for each in found.events]


def read(session_id: UUID, after: Place, limit: int = feed.EVENTS_A_READ) -> Read:
    """The feed when nobody holds it back any more."""
    waits.until_the_older_have_ended()
    return feed.read(session_id, after, limit=limit)


def test_a_settlement_is_told_once(acme: Acme, turn: Turn) -> None:
    before = feed.now()
    call = a_call(acme, "succeeded", session_id=turn.session_id, turn_id=turn.id)
    found = read(turn.session_id, before)
    assert told(found) == [("call.settled", "succeeded")]
    assert found.events[0].facts["seq"] == call.seq
    assert told(read(turn.session_id, found.through)) == []
    assert told(read(turn.session_id, found.events[0].at)) == []


def test_progress_is_told_with_its_cursor(acme: Acme, turn: Turn) -> None:
    before = feed.now()
    call = a_call(acme, "running", session_id=turn.session_id, turn_id=turn.id)
    attempts.heartbeat(call_id=call.id, fence=claim_of(call).fence, cursor=7)
    [progress] = read(turn.session_id, before).events
    assert (progress.kind, progress.facts["facts"]) == ("call.progress", {"cursor": 7})


def test_the_end_of_a_turn_is_told(turn: Turn) -> None:
    before = feed.now()
    sessions.close_turn(turn=turn, closed_as="interrupted")
    [closed] = read(turn.session_id, before).events
    assert (closed.kind, closed.facts["facts"]) == ("turn.closed", {"closed_as": "interrupted"})


def test_another_session_is_told_nothing(acme: Acme, turn: Turn) -> None:
    before = feed.now()
    a_call(acme, "succeeded", session_id=turn.session_id, turn_id=turn.id)
    assert told(read(builders.a_session(acme).id, before)) == []


def test_pages_follow_one_another_without_a_gap(acme: Acme, turn: Turn) -> None:
    before = feed.now()
    place = {"session_id": turn.session_id, "turn_id": turn.id}
    made = [a_call(acme, "succeeded", **place).id for _ in range(5)]
    found: list[str] = []
    while (page := read(turn.session_id, before, limit=2)).events:
        found += [str(each.facts["call"]) for each in page.events]
        before = page.through
    assert sorted(found) == sorted(f"call_{each.hex}" for each in made)


def test_an_event_waits_for_every_older_transaction(acme: Acme, turn: Turn) -> None:
    """A slower transaction that began to write first must not commit into what was passed by."""
    place = {"session_id": turn.session_id, "turn_id": turn.id}
    slow, quick = (a_call(acme, "running", crossed=True, **place) for _ in range(2))
    before = feed.now()
    settled, go_on = threading.Event(), threading.Event()

    @with_own_connection
    def settle_slowly() -> None:
        with transaction.atomic():
            settlements.settle([builders.settlement(claim_of(slow))])
            settled.set()
            assert go_on.wait(20)

    thread = threading.Thread(target=settle_slowly)
    thread.start()
    try:
        assert settled.wait(20)
        builders.settle(quick)
        held = feed.read(turn.session_id, before)
        assert (told(held), held.more) == ([], True)
    finally:
        go_on.set()
        thread.join(20)
    after = read(turn.session_id, held.through)
    assert {each.facts["call"] for each in after.events} == {f"call_{each.id.hex}"
                                                            for each in (slow, quick)}  # fmt: skip
    assert [each.at for each in after.events] == sorted(each.at for each in after.events)


def test_a_place_survives_being_written_down() -> None:
    at = Place(7, UUID(int=9), 3)
    assert feed.place(str(at)) == at


@pytest.mark.parametrize("text", ["", "7", "7-x-1", f"{2**63}-{'0' * 32}-0", "-1-0-0", "7-é-1"])
def test_what_is_no_place_is_read_as_none(text: str) -> None:
    assert feed.place(text) is None


def test_a_place_from_beyond_the_present_is_known(db: None) -> None:
    assert feed.is_beyond(Place(feed.now().transaction + 1_000_000))
    assert not feed.is_beyond(feed.now())


def test_reading_holds_no_lock_and_takes_no_number(acme: Acme, turn: Turn) -> None:
    a_call(acme, "succeeded", session_id=turn.session_id, turn_id=turn.id)
    with transaction.atomic(), connection.cursor() as cursor:
        feed.read(turn.session_id, Place(0))
        cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NULL")
        assert cursor.fetchone()[0]
    assert waits.backend_pid()
