"""What a repair may know of a session: each call as it is shown now, in a fixed number of reads."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger import known_calls
from ledger.models import Session, Turn
from ledger.transcripts.known import Known
from ledger.transcripts.neutral import Opaque, OpaqueKind
from tests import builders, cast
from tests.ledger import saying

pytestmark = pytest.mark.django_db


def place(turn: Turn, position: int = 0) -> dict[str, object]:
    return {"session_id": turn.session_id, "turn_id": turn.id, "position": position}


def text_of(known: Known, provider_id: str) -> str:
    (call,) = known.by_label(provider_id)
    assert call.result is not None
    return "".join(part.text for part in call.result if hasattr(part, "text"))


@pytest.fixture
def turn(acme: cast.Acme) -> Turn:
    return builders.a_turn(builders.a_session(acme))


def known_of(turn: Turn) -> Known:
    return known_calls.known_of(Session.objects.get(id=turn.session_id))


def test_a_recorded_result_is_known_by_the_providers_id(acme: cast.Acme, turn: Turn) -> None:
    call = builders.a_call(acme, "succeeded", tool_call_id="toolu_1", **place(turn))

    known = known_of(turn)

    (found,) = known.by_label("toolu_1")
    assert known.by_id(found.ledger_id) is found
    assert (found.delivery, found.is_error, found.template) == ("real", False, "")
    assert text_of(known, "toolu_1") == bytes(call.result.body).decode()


@pytest.mark.parametrize(
    ("state", "template"),
    [("ambiguous", "ambiguous"), ("running", "under_way"), ("cancelled", "cancelled")],
)
def test_a_call_without_a_result_is_known_with_its_notice(
    acme: cast.Acme, turn: Turn, state: str, template: str
) -> None:
    builders.a_call(acme, state, tool_call_id="toolu_1", **place(turn))

    (found,) = known_of(turn).by_label("toolu_1")

    assert (found.result, found.template) == (None, template)
    assert found.notice


def test_a_call_without_its_reply_brings_no_reply_to_restore(acme: cast.Acme, turn: Turn) -> None:
    builders.a_call(acme, "succeeded", tool_call_id="toolu_1", **place(turn))

    (found,) = known_of(turn).by_label("toolu_1")

    assert found.reply is None


def test_a_recorded_reply_comes_whole_with_each_of_its_calls(acme: cast.Acme, turn: Turn) -> None:
    tool = builders.a_tool(acme, "mail").name
    thinking = Opaque(OpaqueKind.REASONING, "neutral", {"signature": "c2ln"})
    saying.reply(turn, thinking, saying.a_call_of(tool, "a", {"to": "a"}),
                 saying.a_call_of(tool, "b", {"to": "b"}))  # fmt: skip

    (found,) = known_of(turn).by_label("b", tool)

    assert found.reply is not None
    assert [call.id for call in found.reply.calls] == ["a", "b"]
    assert thinking in found.reply.parts
    assert (found.step, found.position, found.call.arguments) == (0, 1, {"to": "b"})


def test_calls_of_other_sessions_are_not_known(acme: cast.Acme, turn: Turn) -> None:
    other = builders.a_turn(builders.a_session(acme))
    builders.a_call(acme, "succeeded", tool_call_id="toolu_1", **place(other))

    assert len(known_of(turn)) == 0


def test_a_longer_session_costs_no_further_query(acme: cast.Acme, turn: Turn) -> None:
    builders.a_call(acme, "succeeded", **place(turn, 0))
    with CaptureQueriesContext(connection) as few:
        known_of(turn)
    for position in range(1, 8):
        builders.a_call(acme, "succeeded", **place(turn, position))

    with CaptureQueriesContext(connection) as many:
        known = known_of(turn)

    assert len(known) == 8
    assert len(many) == len(few)
