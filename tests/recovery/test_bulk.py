"""Bulk runs: frozen, decided row by row, reported, stopped; never forced and never blind."""

from typing import Any

import pytest

from ledger.errors import ConfirmationRequired, Invalid, LoginStale, NotFound, PermissionMissing
from ledger.models import Membership, ToolCall
from ledger.vocabulary import ResolutionAnswer
from recovery import bulk, resolutions, stages
from recovery.bulk import Selection
from recovery.models import BulkRun, Resolution
from recovery.refusals import FilterEmpty, NotEligible, NotPending
from recovery.rulings import Wish
from tests.builders import a_call, a_tool, fresh
from tests.cast import Acme, Globex, a_person, as_decider
from tests.recovery.deciding import ambiguous, decide, delay_over, found, incident_of
from tests.recovery.test_disputes import dispute
from tests.refusals import sql


def freeze(acme: Acme, calls: list[ToolCall], answer: str = "happened", then: str = "",
           **more: Any) -> BulkRun:  # fmt: skip
    return bulk.freeze(
        selection=Selection(incidents=[incident_of(each).id for each in calls]),
        wish=Wish(answer=ResolutionAnswer(answer), then=then, grounds="The export has them."),
        evidence=more.pop("evidence", {}),
        by=more.pop("by", as_decider(acme.olga)),
    )


def start(acme: Acme, run: BulkRun, confirm: str = "") -> None:
    bulk.start(run_id=run.id, confirm=confirm, by=as_decider(acme.olga))


def looked_at(acme: Acme, number: int = 3, **policy: Any) -> list[ToolCall]:
    """Ambiguous calls, each with evidence of its own."""
    calls = [ambiguous(acme, **policy) for _ in range(number)]
    for call in calls:
        found(call, "happened", as_decider(acme.olga))
    return calls


def said(run: BulkRun, column: str) -> list[str]:
    return list(run.rows.order_by("place").values_list(column, flat=True))


def test_a_run_decides_every_row_with_its_own_evidence(acme: Acme) -> None:
    calls = looked_at(acme)
    run = freeze(acme, calls)
    assert said(run, "eligibility") == ["will_run"] * 3
    assert Resolution.objects.count() == 0
    start(acme, run)
    bulk.run_due()
    assert said(run, "outcome") == ["done"] * 3
    for call in calls:
        delay_over(call)
        assert fresh(call).state == "succeeded"
    assert {each.carry_out_after_s for each in Resolution.objects.all()} == {30}


def test_freezing_says_of_every_row_why_it_may_not_run(acme: Acme) -> None:
    unseen = ambiguous(acme)
    [settled] = looked_at(acme, 1, delivery_delay_s=0)
    decide(acme, settled, "happened")
    [waiting] = looked_at(acme, 1)
    decide(acme, waiting, "happened")
    [two] = looked_at(acme, 1, second_person="always")
    running = freeze(acme, [unseen, settled, waiting, two])
    rows = {row.call_id: row.eligibility for row in running.rows.all()}
    assert [rows[each.id] for each in (unseen, settled, waiting, two)] == [
        "needs_evidence", "already_settled", "already_decided", "needs_second_person",
    ]  # fmt: skip


def test_a_locked_row_says_so(acme: Acme) -> None:
    call = a_call(acme, "ambiguous")
    found(call, "did_not_happen", as_decider(acme.olga))
    run = freeze(acme, [call], "did_not_happen", "close")
    assert said(run, "eligibility") == ["locked"]


def test_in_bulk_a_side_effect_is_never_run_again_nor_stated_blindly(acme: Acme) -> None:
    call = ambiguous(acme)
    found(call, "did_not_happen", as_decider(acme.olga))
    again = freeze(acme, [call], "did_not_happen", "repeat")
    other = ambiguous(acme)
    word = found(other, "happened", as_decider(acme.olga), kind="statement")
    blind = freeze(acme, [other], evidence={incident_of(other).id: [word.id]})
    assert said(again, "eligibility") + said(blind, "eligibility") == ["not_allowed"] * 2


def test_a_login_that_is_too_old_freezes_and_starts_no_side_effect(acme: Acme) -> None:
    calls = looked_at(acme)
    stale = as_decider(acme.olga, login_age_s=901)
    with pytest.raises(LoginStale):
        freeze(acme, calls, by=stale)
    run = freeze(acme, calls)
    with pytest.raises(LoginStale):
        bulk.start(run_id=run.id, confirm="", by=stale)
    assert BulkRun.objects.get().started_at is None
    start(acme, run)


def test_evidence_may_be_named_for_each_row(acme: Acme) -> None:
    [call] = looked_at(acme, 1)
    piece = found(call, "happened", as_decider(acme.olga), kind="document", body="row 7")
    run = freeze(acme, [call], evidence={incident_of(call).id: [piece.id]})
    assert run.rows.get().evidence_ids == [piece.id]


def test_a_row_that_moved_is_reported_and_never_forced(acme: Acme) -> None:
    calls = looked_at(acme)
    run = freeze(acme, calls)
    found(calls[1], "did_not_happen", as_decider(acme.olga))
    start(acme, run)
    bulk.run_due()
    assert said(run, "outcome") == ["done", "changed", "done"]
    assert Resolution.objects.filter(call=calls[1]).count() == 0


def test_a_run_is_stopped_between_rows(acme: Acme) -> None:
    run = freeze(acme, looked_at(acme))
    start(acme, run)
    bulk.run_due(limit=1)
    bulk.stop(run_id=run.id, by=as_decider(acme.olga))
    bulk.run_due()
    assert said(run, "outcome") == ["done", "skipped", "skipped"]


def test_a_run_that_is_stopped_before_it_began_is_skipped_as_a_whole(acme: Acme) -> None:
    [ready] = looked_at(acme, 1)
    run = freeze(acme, [ready, ambiguous(acme)])
    bulk.stop(run_id=run.id, by=as_decider(acme.olga))
    assert said(run, "outcome") == ["skipped", ""], "the other was never to run"


def test_stopping_a_run_that_is_over_changes_no_row(acme: Acme) -> None:
    run = freeze(acme, looked_at(acme, 1))
    start(acme, run)
    bulk.run_due()
    bulk.stop(run_id=run.id, by=as_decider(acme.olga))
    assert said(run, "outcome") == ["done"]


def test_what_failed_is_frozen_anew_with_its_answer_grounds_and_evidence(acme: Acme) -> None:
    calls = looked_at(acme, 2)
    pieces = {incident_of(each).id: [found(each, "happened", as_decider(acme.olga),
                                           kind="document", body=f"row {at}").id]
              for at, each in enumerate(calls)}  # fmt: skip
    run = freeze(acme, [*calls, ambiguous(acme)], evidence=pieces)
    start(acme, run)
    bulk.run_due(limit=1)
    Membership.objects.filter(person=acme.olga).update(role="viewer")
    bulk.run_due()
    assert said(run, "outcome") == ["done", "failed", ""]
    Membership.objects.filter(person=acme.olga).update(role="operator")

    new = bulk.again(run_id=run.id, by=as_decider(acme.olga))
    assert (new.answer, new.then, new.grounds) == (run.answer, run.then, run.grounds)
    [row] = new.rows.all()
    assert (row.call_id, row.eligibility) == (calls[1].id, "will_run")
    assert row.evidence_ids == pieces[incident_of(calls[1]).id]
    start(acme, new)
    bulk.run_due()
    assert said(new, "outcome") == ["done"]
    assert said(run, "outcome") == ["done", "failed", ""], "the old run keeps what it reported"


def test_only_what_failed_is_tried_again_and_only_by_whom_may_decide(
    acme: Acme, globex: Globex
) -> None:
    run = freeze(acme, looked_at(acme, 1))
    with pytest.raises(Invalid, match="No row of this run has failed"):
        bulk.again(run_id=run.id, by=as_decider(acme.olga))
    with pytest.raises(PermissionMissing):
        bulk.again(run_id=run.id, by=as_decider(acme.vera))
    with pytest.raises(NotFound):
        bulk.again(run_id=run.id, by=as_decider(globex.mallory_herself))


def test_only_so_many_rows_of_one_tool_are_decided_at_a_time(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "ROWS_PER_TOOL", 2)
    monkeypatch.setattr(bulk, "PACE_S", 3600.0)
    tool = a_tool(acme, "mail.send")
    many = [a_call(acme, "ambiguous", tool=tool, arguments={"to": each}) for each in range(5)]
    for call in many:
        found(call, "happened", as_decider(acme.olga))
    [other] = looked_at(acme, 1)
    runs = [freeze(acme, [*many[:3], other]), freeze(acme, many[3:])]
    for run in runs:
        start(acme, run)

    assert bulk.run_due() == 3
    assert [said(run, "outcome") for run in runs] == [["done", "done", "", "done"], ["", ""]]
    assert bulk.run_due() == 0
    sql("UPDATE recovery_bulkrow SET done_at = done_at - interval '1 hour' "
        "WHERE run_id = %s", runs[0].id)  # fmt: skip
    assert bulk.run_due() == 2
    assert [said(run, "outcome") for run in runs] == [["done"] * 4, ["done", ""]]
    assert BulkRun.objects.get(id=runs[1].id).finished_at is None


def test_a_side_of_a_dispute_reads_before_the_run_that_a_third_person_decides(acme: Acme) -> None:
    [call] = looked_at(acme, 1, delivery_delay_s=60)
    omar, tess = (
        as_decider(a_person(each, acme.workspace, "operator")) for each in ("omar", "tess")
    )
    dispute(decide(acme, call, "happened"), omar)
    for one_side in (as_decider(acme.olga), omar):
        [row] = freeze(acme, [call], by=one_side).rows.all()
        assert row.eligibility == "not_allowed"
        assert "Ask a third person" in row.detail
    assert said(freeze(acme, [call], by=tess), "eligibility") == ["will_run"]


def test_what_a_run_recorded_is_taken_back_as_a_whole(acme: Acme) -> None:
    calls = looked_at(acme)
    run = freeze(acme, calls)
    start(acme, run)
    bulk.run_due()
    delay_over(calls[0])
    counts = bulk.take_back(run_id=run.id, grounds="Wrong export.", by=as_decider(acme.olga))
    assert counts == {"taken_back": 2, "too_late": 0}
    stages_now = sorted(str(stages.of(each)) for each in Resolution.objects.all())
    assert stages_now == ["carried_out", "taken_back", "taken_back"]


def test_an_empty_filter_is_refused(acme: Acme) -> None:
    wish = Wish(answer=ResolutionAnswer.ABANDON, grounds="x")
    for selection in (Selection(), Selection(filters={"tool": ""})):
        with pytest.raises(FilterEmpty):
            bulk.freeze(selection=selection, wish=wish, evidence={}, by=as_decider(acme.olga))


def test_a_filter_selects_open_incidents_once_and_for_all(acme: Acme) -> None:
    tool = a_tool(acme, "mail.send")
    first = a_call(acme, "ambiguous", tool=tool)
    ambiguous(acme)
    run = bulk.freeze(
        selection=Selection(filters={"tool": "mail.send"}),
        wish=Wish(answer=ResolutionAnswer.ABANDON, grounds="Nobody can know."),
        evidence={},
        by=as_decider(acme.olga),
    )
    a_call(acme, "ambiguous", tool=tool, arguments={"path": "later"})
    assert [row.call_id for row in run.rows.all()] == [first.id]


def test_a_list_that_is_too_old_or_running_is_not_started_again(acme: Acme) -> None:
    old, run = freeze(acme, looked_at(acme, 1)), freeze(acme, looked_at(acme, 1))
    sql("UPDATE recovery_bulkrun SET expires_at = clock_timestamp() WHERE id = %s", old.id)
    with pytest.raises(NotPending, match="too old"):
        start(acme, old)
    start(acme, run)
    with pytest.raises(NotPending, match="started already"):
        start(acme, run)


def test_many_rows_are_confirmed_by_typing_their_number(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bulk.MANY, 3, 2)
    run = freeze(acme, looked_at(acme))
    with pytest.raises(ConfirmationRequired, match="'happened 3'"):
        start(acme, run)
    start(acme, run, "happened 3")


def test_a_right_that_was_withdrawn_meanwhile_decides_nothing(acme: Acme) -> None:
    run = freeze(acme, looked_at(acme, 1))
    start(acme, run)
    Membership.objects.filter(person=acme.olga).update(role="viewer")
    bulk.run_due()
    assert said(run, "outcome") == ["failed"]


def test_a_viewer_and_a_neighbour_freeze_nothing(acme: Acme, globex: Globex) -> None:
    [call] = looked_at(acme, 1)
    with pytest.raises(PermissionMissing):
        freeze(acme, [call], by=as_decider(acme.vera))
    with pytest.raises(NotFound):
        freeze(acme, [call], by=as_decider(globex.mallory_herself))


def test_a_run_has_at_most_five_hundred_rows(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "ROWS_MAX", 2)
    with pytest.raises(Invalid, match="at most 2 rows"):
        freeze(acme, looked_at(acme))


def test_one_handle_is_not_attached_to_many_calls(acme: Acme) -> None:
    with pytest.raises(NotEligible, match="one call at a time"):
        freeze(acme, looked_at(acme, 1), "attach_handle")


def test_a_row_decided_by_hand_meanwhile_is_reported_as_changed(acme: Acme) -> None:
    [call] = looked_at(acme, 1)
    run = freeze(acme, [call])
    start(acme, run)
    resolution = decide(acme, call, "happened")
    bulk.run_due()
    assert said(run, "outcome") == ["changed"]
    assert resolutions.get(
        resolution_id=resolution.id, workspace_id=call.workspace_id
    ) == Resolution.objects.get(call=call)
