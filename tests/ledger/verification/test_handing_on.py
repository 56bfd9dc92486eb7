"""I33: a compaction or hand-off that lost or made up a call is found, alone."""

import pytest

from ledger import ids
from tests import builders
from tests.cast import Acme
from tests.ledger.test_compactions import a_call, a_history, compacted
from tests.ledger.test_handoffs import bens, offered, taken
from tests.ledger.verification.planting import broken, plant

pytestmark = pytest.mark.corrupts


def test_i33_finds_a_compaction_that_dropped_an_open_call(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    row = compacted(session)
    plant("UPDATE ledger_compaction SET unresolved = '{}', carry_over = '[]' WHERE id = %s", row.id)
    assert broken() == {"I33"}


def test_i33_finds_a_call_that_was_settled_when_it_was_carried_over(acme: Acme) -> None:
    session, turn = a_history(acme)
    done = a_call(acme, turn, "succeeded", 0)
    row = compacted(session)
    plant(
        "UPDATE ledger_compaction SET unresolved = ARRAY[%s], "
        "carry_over = jsonb_build_array(jsonb_build_object('call', %s::text)) WHERE id = %s",
        done.id, ids.shown("call", done.id), row.id,
    )  # fmt: skip
    assert broken() == {"I33"}


def test_i33_finds_a_carry_over_without_a_line_for_a_call(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    row = compacted(session)
    plant("UPDATE ledger_compaction SET carry_over = '[]' WHERE id = %s", row.id)
    assert broken() == {"I33"}


def test_i33_finds_a_hand_off_that_left_a_call_behind(acme: Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0)
    row = taken(offered(session), bens(acme))
    plant("UPDATE ledger_handoff SET calls = '{}' WHERE id = %s", row.id)
    plant("UPDATE ledger_toolcall SET handed_off_id = NULL WHERE id = %s", call.id)
    assert broken() == {"I33"}


def test_i33_finds_an_owner_that_no_hand_off_made(acme: Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0)
    taken(offered(session), bens(acme))
    plant("UPDATE ledger_toolcall SET handed_off_id = NULL WHERE id = %s", call.id)
    assert broken() == {"I33"}


def test_i33_finds_a_version_that_went_back(acme: Acme) -> None:
    session, _ = a_history(acme)
    compacted(session)
    plant("UPDATE ledger_session SET version = 0 WHERE id = %s", session.id)
    assert broken() == {"I33"}


def test_i33_is_content_with_compactions_and_hand_offs_one_after_the_other(acme: Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0, crossed=True)
    compacted(session)
    mine, _ = a_history(acme)
    taken(offered(session, "ada"), mine)
    compacted(mine)
    builders.settle(call)
    assert broken() == set()
