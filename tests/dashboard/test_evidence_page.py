"""The page of one piece of evidence: its body can be read, masked, and by its workspace only."""

from typing import Any

import pytest
from django.test import Client

from ledger import evidence, ids, strictjson
from ledger.errors import LedgerError
from ledger.models import Attempt, Evidence, ToolCall
from tests import builders, cast
from tests.dashboard.deciding import operator, text
from tests.dashboard.test_call_page import client_of
from tests.recovery.deciding import ambiguous, decide, found, incident_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def call(acme: cast.Acme) -> ToolCall:
    return ambiguous(acme)


@pytest.fixture
def vera(acme: cast.Acme) -> Client:
    return operator(acme.vera)


def a_document(acme: cast.Acme, call: ToolCall, body: str, **more: Any) -> Evidence:
    return found(call, "happened", cast.as_decider(acme.olga), kind="document", body=body, **more)


def at(piece: Evidence, rest: str = "") -> str:
    return f"/evidence/{ids.shown('evidence', piece.id)}{rest}"


def test_a_pasted_record_can_be_read_and_leads_back_to_its_call_and_incident(
    acme: cast.Acme, vera: Client, call: ToolCall
) -> None:
    piece = a_document(acme, call, '{"sent": ["4711"]}', media_type="application/json",
                       reference="https://mail.example/sent/4711")  # fmt: skip
    answer = vera.get(at(piece))
    page, read = answer.content.decode(), text(answer)
    for said in ("Document about", "happened", "olga", "https://mail.example/sent/4711",
                 piece.sha256, "4711", "brought by a person, not checked"):  # fmt: skip
        assert said in read
    assert f'href="/calls/{ids.shown("call", call.id)}"' in page
    assert f'href="/incidents/{ids.shown("incident", incident_of(call).id)}#' in page
    assert '<a href="https://mail' not in page


def test_a_late_result_can_be_read_before_it_is_adopted(acme: cast.Acme, vera: Client) -> None:
    call = builders.a_call(acme, "ambiguous", "side_effect")
    with pytest.raises(LedgerError):
        builders.settle(call, {"id": "invoice-7"})
    page = text(vera.get(at(Evidence.objects.get(call=call))))
    assert "Late result about" in page
    assert "attempt 1" in page
    assert "invoice-7" in page
    assert "from the tool, not checked" in page


def test_markup_and_characters_that_turn_text_are_drawn_as_text(
    acme: cast.Acme, vera: Client, call: ToolCall
) -> None:
    hostile = "<img src=x onerror=alert(1)> \u202etxt \x1b[31m"
    piece = a_document(acme, call, hostile, reference=hostile)
    page = vera.get(at(piece)).content.decode()
    assert "<img" not in page
    assert page.count("⟨U+202E⟩") == 2
    assert page.count("␛[31m") == 2


def test_a_large_body_is_cut_on_the_page_and_whole_in_the_masked_file(
    acme: cast.Acme, vera: Client, call: ToolCall
) -> None:
    piece = a_document(acme, call, "row\n" * 20_000 + "password=hunter2-hunter2")
    page = vera.get(at(piece)).content.decode()
    assert len(page) < 64 * 1024
    assert "more characters are in the download" in page
    assert f'href="{at(piece, "/body")}"' in page
    answer = vera.get(at(piece, "/body"))
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer.content.count(b"row\n") == 20_000
    assert b"hunter2" not in answer.content


def test_what_was_cut_when_it_was_kept_says_so(
    acme: cast.Acme, vera: Client, call: ToolCall
) -> None:
    attempt = Attempt.objects.get(call=call)
    stored = strictjson.storable(b"row row", "text/plain", truncated=True, full_size_bytes=9_000)
    piece, _ = evidence.keep(call, kind="late_result", attempt_id=attempt.id, stored=stored,
                             media_type="text/plain")  # fmt: skip
    page = text(vera.get(at(piece)))
    assert "Only its beginning was kept" in page
    assert "8.8 KB" in page


def test_the_evidence_of_a_neighbour_is_not_there(
    acme: cast.Acme, globex: cast.Globex, call: ToolCall
) -> None:
    piece = a_document(acme, call, "a record")
    mallory = client_of(globex.mallory_herself)
    for address in (at(piece), at(piece, "/body"), "/evidence/ev_nonsense"):
        assert mallory.get(address).status_code == 404
    assert mallory.get(f"/go{at(piece)[9:]}").status_code == 404


def test_evidence_is_found_by_its_id(acme: cast.Acme, vera: Client, call: ToolCall) -> None:
    piece = a_document(acme, call, "a record")
    for asked in (ids.shown("evidence", piece.id), piece.id.hex.upper()):
        assert vera.get(f"/go/{asked}").headers.get("Location") == at(piece)


def test_every_list_of_evidence_leads_to_it(acme: cast.Acme, vera: Client, call: ToolCall) -> None:
    piece = a_document(acme, call, "a record")
    link = f'href="{at(piece)}"'
    incident = f"/incidents/{ids.shown('incident', incident_of(call).id)}"
    assert vera.get(incident).content.decode().count(link) == 2
    asked = ambiguous(acme, second_person="always")
    resolution = decide(acme, asked, "happened")
    backing = Evidence.objects.get(call=asked)
    page = vera.get(f"/approvals/{ids.shown('resolution', resolution.id)}").content.decode()
    assert f'href="{at(backing)}"' in page


def test_an_attempt_leads_to_the_evidence_it_left(acme: cast.Acme, vera: Client) -> None:
    call = builders.a_call(acme, "ambiguous", "side_effect")
    with pytest.raises(LedgerError):
        builders.settle(call, {"id": 7})
    page = vera.get(f"/calls/{ids.shown('call', call.id)}/attempts/1").content.decode()
    assert f'href="{at(Evidence.objects.get(call=call))}"' in page
