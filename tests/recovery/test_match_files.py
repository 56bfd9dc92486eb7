"""Match files: a provider's export becomes evidence of exactly the calls that its rows name."""

import json
from typing import Any

import pytest

from ledger import ids
from ledger.errors import Invalid
from ledger.models import Evidence, ToolCall
from ledger.vocabulary import ResolutionAnswer
from recovery import bulk, match_files
from recovery.bulk import Selection
from recovery.models import BulkRow, BulkRun
from recovery.refusals import NotEligible
from recovery.rulings import Wish
from tests import builders
from tests.cast import Acme, as_decider
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, delay_over, incident_of

pytestmark = pytest.mark.django_db


def export(*lines: str, column: str = "reference") -> match_files.MatchFile:
    body = "\n".join(("reference,amount,note", *lines)).encode()
    return match_files.read("payments.csv", body, column)


def frozen(
    acme: Acme, file: match_files.MatchFile, *calls: ToolCall, answer: str = "happened",
    then: str = "",
) -> BulkRun:  # fmt: skip
    return bulk.freeze(
        selection=Selection(incidents=[incident_of(each).id for each in calls]),
        wish=Wish(answer=ResolutionAnswer(answer), then=then, grounds="The export says so."),
        evidence={}, by=as_decider(acme.olga), export=file,
    )  # fmt: skip


def row(run: BulkRun, call: ToolCall) -> BulkRow:
    return BulkRow.objects.get(run=run, call=call)


def test_a_call_that_a_row_names_gets_that_row_as_its_own_document(acme: Acme) -> None:
    call, other = ambiguous(acme), ambiguous(acme)
    file = export(f"{call.marker},118.00,sent", f"{other.marker},7.00,sent")
    run = frozen(acme, file, call, other)
    piece = Evidence.objects.get(call=call)
    assert (piece.kind, piece.finding, piece.by_name) == ("document", "happened", "olga")
    assert piece.message == (
        "Row 2 of the provider's export 'payments.csv', matched by 'reference'."
    )
    assert json.loads(bytes(piece.body))["amount"] == "118.00"
    assert row(run, call).evidence_ids == [piece.id]
    assert {each.eligibility for each in run.rows.all()} == {"will_run"}


def test_what_is_frozen_on_an_export_is_carried_out_on_it(acme: Acme) -> None:
    call = ambiguous(acme)
    run = frozen(acme, export(f"{call.marker},1,x"), call)
    bulk.start(run_id=run.id, confirm=bulk.confirm_of(run), by=as_decider(acme.olga))
    bulk.run_due()
    delay_over(call)
    assert builders.fresh(call).state == "succeeded"


@pytest.mark.parametrize("name", ["marker", "effect key", "call id", "bare id", "idempotency key"])
def test_a_call_goes_by_each_of_its_names(acme: Acme, name: str) -> None:
    call = builders.a_call(acme, "ambiguous", idempotency_key="order/1042")
    names = {"marker": call.marker, "effect key": call.effect_key, "bare id": str(call.id),
             "call id": ids.shown("call", call.id), "idempotency key": "order/1042"}  # fmt: skip
    found = match_files.match(export(f" {names[name]} ,1,x"), [call])
    assert found[call.id].line is not None


def test_a_call_goes_by_its_handle_which_is_kept_encrypted(acme: Acme) -> None:
    call = builders.a_call(acme, "running", "long_running")
    builders.cross(call)
    builders.park(call, "render-7741")
    found = match_files.match(export("render-7741,1,x", "render-7742,1,x"), [call])
    assert found[call.id].line is not None
    assert found[call.id].line.number == 2


def test_who_is_not_in_the_file_drops_out_with_the_reason(acme: Acme) -> None:
    named, absent = ambiguous(acme), ambiguous(acme)
    run = frozen(acme, export(f"{named.marker},1,x"), named, absent)
    assert row(run, absent).eligibility == "no_match"
    assert row(run, absent).detail == "No row of the file names it in 'reference'."
    assert not Evidence.objects.filter(call=absent).exists()


def test_an_id_that_occurs_twice_in_the_file_is_flagged_and_matches_nothing(acme: Acme) -> None:
    call = ambiguous(acme)
    run = frozen(acme, export(f"{call.marker},1,x", "else,2,y", f"{call.marker},3,z"), call)
    assert row(run, call).eligibility == "matched_twice"
    assert row(run, call).detail == "More than one row of the file names it: 2, 4."
    assert not Evidence.objects.exists()


def test_two_names_of_a_call_in_two_rows_are_flagged(acme: Acme) -> None:
    call = ambiguous(acme)
    run = frozen(acme, export(f"{call.marker},1,x", f"{call.id},2,y"), call)
    assert row(run, call).eligibility == "matched_twice"


def test_an_id_that_two_calls_share_matches_neither(acme: Acme) -> None:
    calls = [builders.a_call(acme, "ambiguous", tool_call_id="toolu_1") for _ in range(2)]
    run = frozen(acme, export("toolu_1,1,x"), *calls)
    assert {row(run, each).eligibility for each in calls} == {"matched_twice"}
    assert "belongs to 2 of these" in row(run, calls[0]).detail


def test_a_call_that_was_decided_meanwhile_is_listed_as_such(acme: Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    incident = incident_of(call)
    decide(acme, call, "abandon")
    run = bulk.freeze(
        selection=Selection(incidents=[incident.id]),
        wish=Wish(answer=ResolutionAnswer.HAPPENED, grounds="The export says so."),
        evidence={}, by=as_decider(acme.olga), export=export(f"{call.marker},1,x"),
    )  # fmt: skip
    assert row(run, call).eligibility == "already_settled"
    assert not Evidence.objects.exists(), "what is settled needs none"


def test_an_export_may_say_that_an_effect_did_not_happen(acme: Acme) -> None:
    call = ambiguous(acme)
    run = frozen(acme, export(f"{call.marker},1,x"), call, answer="did_not_happen", then="close")
    assert row(run, call).eligibility == "will_run"
    assert Evidence.objects.get(call=call).finding == "did_not_happen"


def test_an_export_answers_nothing_but_whether_effects_happened(acme: Acme) -> None:
    call = ambiguous(acme)
    with pytest.raises(NotEligible, match="An export says that effects happened"):
        frozen(acme, export(f"{call.marker},1,x"), call, answer="abandon")
    assert not BulkRun.objects.exists()


# Reading


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_usual_delimiters_are_read(delimiter: str) -> None:
    body = delimiter.join(("id", "amount")) + "\r\n" + delimiter.join(("x-1", "7")) + "\r\n"
    file = match_files.read("a.csv", b"\xef\xbb\xbf" + body.encode(), "id")
    assert dict(file.lines["x-1"][0].cells) == {"id": "x-1", "amount": "7"}


def test_cells_are_text_always() -> None:
    hostile = '=HYPERLINK("http://evil"),00012,<script>'
    file = match_files.read("a.csv", f"id,b,c\nx,{hostile}\n".encode(), "id")
    assert file.lines["x"][0].cells["c"] == "00012"
    assert file.lines["x"][0].cells["b"].startswith("=HYPERLINK(")


def test_a_file_of_one_column_needs_no_name_for_it() -> None:
    assert "x-1" in match_files.read("a.csv", b"id\nx-1\n", "").lines


@pytest.mark.parametrize(
    ("body", "column", "says"),
    [
        (b"id,amount\nx,1\n", "reference", "no column 'reference'. It has: id, amount."),
        (b"id,amount\nx,1\n", "", "no column ''"),
        (b"id,id\nx,1\n", "id", "more than one column 'id'"),
        (b"id,amount\n", "id", "no rows below its heading"),
        (b"", "id", "no rows below its heading"),
        (b"\xff\xfe\x00", "id", "no UTF-8 text"),
        (b"id\nx\x00y\n", "id", "zero bytes"),
        (b"x" * (match_files.BYTES_MAX + 1), "id", "larger than 2 MB"),
        (b"id\n" + b"x\n" * (match_files.ROWS_MAX + 1), "id", "at most 50000 rows"),
        (b'id,b\n"x' + b"y" * 200_000 + b'",1\n', "id", "cannot be read as CSV"),
    ],
)
def test_what_is_no_match_file_says_what_to_do(body: bytes, column: str, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        match_files.read("a.csv", body, column)
    assert says in str(refused.value)


def test_rows_without_an_id_and_short_rows_are_passed_over() -> None:
    file = match_files.read("a.csv", b"n,id,c\n1,,z\n2\n3,x-1\n\n", "id")
    found: dict[str, Any] = {name: len(lines) for name, lines in file.lines.items()}
    assert found == {"x-1": 1}
