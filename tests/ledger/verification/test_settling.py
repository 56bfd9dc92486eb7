"""I11 to I16: each is found when a row that breaks it is planted."""

import pytest

from ledger import journal
from ledger.journal import Move
from ledger.models import ToolCall
from ledger.vocabulary import Actor, Cause, Deadline, Effect, Meaning
from recovery import incidents
from tests import builders
from tests.cast import Acme
from tests.ledger.verification.planting import broken, broken_in, ddl, plant, plant_in_chain

pytestmark = pytest.mark.corrupts


def late_result(call: ToolCall) -> None:
    journal.append([Move(call=call, kind="late_result", by=Actor.WORKER, fence=1,
                         facts={"evidence": "00"})])  # fmt: skip


def test_i11_finds_an_event_that_moves_a_settled_call(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    late_result(call)
    plant_in_chain(call, "UPDATE ledger_event SET effect = 'did_not_happen' WHERE call_id = %s "
                   "AND kind = 'late_result'", call.id)  # fmt: skip
    plant("UPDATE ledger_toolcall SET effect = 'did_not_happen' WHERE id = %s", call.id)
    # No edge of the machine changes a settled effect either.
    assert broken_in(call) == {"I11", "I20"}


def test_i12_finds_an_instant_that_is_not_the_settlements(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    plant("UPDATE ledger_toolcall SET settled_at = settled_at + interval '1 second' "
          "WHERE id = %s", call.id)  # fmt: skip
    assert broken_in(call) == {"I12"}


def test_i12_finds_a_second_settlement(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    late_result(call)
    plant("UPDATE ledger_event SET settles = true, at = (SELECT settled_at FROM ledger_toolcall "
          "WHERE id = call_id) WHERE call_id = %s AND kind = 'late_result'", call.id)  # fmt: skip
    plant_in_chain(call, "UPDATE ledger_event SET fence = fence WHERE call_id = %s", call.id)
    # It settles by no edge, and after the first.
    assert broken_in(call) == {"I11", "I12", "I20"}


@pytest.mark.parametrize("constraint", ["settled_says_when", "settled_call_has_no_deadline"])
def test_i12_finds_a_constraint_that_is_gone(db: None, constraint: str) -> None:
    ddl(f"ALTER TABLE ledger_toolcall DROP CONSTRAINT {constraint}")
    assert broken() == {"I12"}


def test_i12_finds_a_settled_call_with_a_deadline(acme: Acme) -> None:
    ddl("ALTER TABLE ledger_toolcall DROP CONSTRAINT settled_call_has_no_deadline")
    call = builders.a_call(acme, in_state="succeeded")
    plant("UPDATE ledger_toolcall SET backoff_at = clock_timestamp() WHERE id = %s", call.id)
    ddl("SET CONSTRAINTS ALL IMMEDIATE")
    ddl("ALTER TABLE ledger_toolcall ADD CONSTRAINT settled_call_has_no_deadline CHECK (true)")
    assert broken_in(call) == {"I12"}


def test_i13_finds_a_success_without_its_result(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    plant("DELETE FROM ledger_result WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I13"}


def test_i13_finds_a_result_that_settled_nothing(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    late_result(call)
    plant("UPDATE ledger_result SET event_seq = event_seq + 1 WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I13"}


def test_i14_finds_a_result_of_another_fence(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    plant("UPDATE ledger_result SET fence = 9 WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I14"}


def test_i14_finds_a_result_of_a_fence_that_was_lost_before(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    plant("UPDATE ledger_attempt SET fence_lost_at = claimed_at WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I14"}


def test_i15_finds_a_pair_that_its_class_does_not_have(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running", recovery_class="idempotent_write",
                           crossed=True)  # fmt: skip
    builders.report(call, Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    assert builders.fresh(call).state == "backing_off"
    plant("UPDATE ledger_toolcall SET recovery_class = 'side_effect' WHERE id = %s", call.id)
    assert broken_in(call) == {"I15"}


@pytest.mark.parametrize(
    ("in_state", "recovery_class", "effect"),
    [
        ("failed", "side_effect", "possible"),
        ("cancelled", "side_effect", "possible"),
        ("rejected", "side_effect", "happened"),
        ("expired", "side_effect", "possible"),
        ("succeeded", "read_only", "happened"),
    ],
)
def test_i15_finds_what_no_settled_call_may_hide(
    acme: Acme, in_state: str, recovery_class: str, effect: str
) -> None:
    call = builders.a_call(acme, in_state=in_state, recovery_class=recovery_class)
    # Also where the published table was widened to allow it.
    plant("INSERT INTO ledger_pair VALUES (%s, %s, %s) ON CONFLICT DO NOTHING RETURNING 1",
          in_state, effect, recovery_class)  # fmt: skip
    plant("UPDATE ledger_toolcall SET effect = %s WHERE id = %s", effect, call.id)
    assert "I15" in broken()


def test_i15_finds_pairs_that_are_not_the_machines(db: None) -> None:
    plant("DELETE FROM ledger_pair WHERE state = 'abandoned'")
    assert broken() == {"I15"}


def test_i16_finds_an_ambiguity_that_the_machine_ended_without_proof(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="ambiguous")
    journal.append([Move(call=call, kind="proved_done", by=Actor.RECOVERY,
                         effect=Effect.HAPPENED, facts={"grounds": "It feels done."})])  # fmt: skip
    incidents.close(incidents.current(call))  # type: ignore[arg-type]
    assert broken_in(call) == {"I16"}


@pytest.mark.parametrize(("person", "grounds"), [("", "Nobody can know."), ("olga", "")])
def test_i16_finds_an_abandoning_without_person_or_grounds(
    acme: Acme, person: str, grounds: str
) -> None:
    call = builders.a_call(acme, in_state="ambiguous")
    journal.append([Move(call=call, kind="abandoned", by=Actor.OPERATOR, by_id=person,
                         facts={"grounds": grounds})])  # fmt: skip
    incidents.close(incidents.current(call))  # type: ignore[arg-type]
    assert broken_in(call) == {"I16", "I36"}


def _replayed(acme: Acme) -> ToolCall:
    """A twin that was answered with the result of a call in the same session."""
    session = builders.a_session(acme)
    tool = builders.a_tool(acme)
    builders.a_call(acme, "succeeded", tool=tool, session_id=session.id)
    return builders.fresh(
        builders.answer_to(builders.a_submit(acme, tool, session_id=session.id)).call_id
    )


def test_i13_finds_a_twin_whose_result_is_not_the_others(acme: Acme) -> None:
    twin = _replayed(acme)
    plant("UPDATE ledger_result SET sha256 = repeat('0', 64) WHERE call_id = %s", twin.id)
    assert broken_in(twin) == {"I13"}


def test_i13_finds_a_twin_without_its_result(acme: Acme) -> None:
    twin = _replayed(acme)
    plant("DELETE FROM ledger_result WHERE call_id = %s", twin.id)
    assert broken_in(twin) == {"I13"}


def test_i13_finds_a_twin_that_ran(acme: Acme) -> None:
    session = builders.a_session(acme)
    first = builders.a_call(acme, session_id=session.id)
    ran = builders.a_call(acme, "succeeded", session_id=session.id)
    plant("UPDATE ledger_toolcall SET twin_of_id = %s WHERE id = %s", first.id, ran.id)
    assert broken_in(ran) == {"I13"}


def test_i13_finds_a_twin_of_a_twin(acme: Acme) -> None:
    twin = _replayed(acme)
    tool = builders.Tool.objects.get(name=twin.tool)
    other = builders.answer_to(builders.a_submit(acme, tool, session_id=twin.session_id)).call_id
    plant("UPDATE ledger_toolcall SET twin_of_id = %s WHERE id = %s", twin.id, other)
    assert broken_in(builders.fresh(other)) == {"I13"}
