"""Canaries of every kind, wherever people and tools write: no page or answer shows one (S9)."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from ledger import ids, keys
from ledger.models import Evidence, Interrupt, ToolCall
from ledger.vocabulary import Cause, Meaning
from recovery import statements
from recovery.models import Incident
from tests import builders, cast, conversations
from tests.dashboard.deciding import send, typed
from tests.dashboard.test_call_page import client_of
from tests.recovery.deciding import decide, version_of

pytestmark = pytest.mark.django_db

CANARIES = {
    "a key by name": "canary-0-hunter2",
    "a pointer": "canary-1-4929 1234",
    "a key by looks": "sk-canary2canary2canary2",
    "a bearer token": "canary3canary3canary3",
    "a password in an address": "canary4canary4",
    "a private key": "canary5canary5canary5",
}
KEY = f"-----BEGIN PRIVATE KEY-----\n{CANARIES['a private key']}\n-----END PRIVATE KEY-----"
TEXT = (
    f"password={CANARIES['a key by name']} {CANARIES['a key by looks']} "
    f"Authorization: Bearer {CANARIES['a bearer token']} "
    f"https://ada:{CANARIES['a password in an address']}@example.org {KEY}"
)
ARGUMENTS = {"password": CANARIES["a key by name"], "card": CANARIES["a pointer"], "note": TEXT}


@pytest.fixture
def planted(acme: cast.Acme) -> tuple[ToolCall, ...]:
    """An ambiguous call with evidence and a decision, a failed one and a finished one."""
    schema = {"properties": {"card": {"x-secret": True}}}
    tool = builders.a_tool(acme, "charge", "side_effect", input_schema=schema)
    session = builders.a_session(acme, label=TEXT[:150])
    turn = builders.a_turn(session)
    more: dict[str, Any] = {"tool": tool, "session_id": session.id, "turn_id": turn.id}
    ambiguous = builders.a_call(acme, "ambiguous", arguments=ARGUMENTS, **more)
    found = statements.Found(kind="document", finding="happened", message=TEXT, reference=TEXT,
                             body=TEXT)  # fmt: skip
    statements.state_evidence(call_id=ambiguous.id, found=found, by=cast.as_decider(acme.olga))
    decide(acme, ambiguous, "abandon", grounds=TEXT)
    done = builders.a_call(acme, "running", arguments=ARGUMENTS | {"n": 2}, tool=tool)
    builders.cross(done)
    builders.settle(done, {"token": CANARIES["a key by name"], "text": TEXT})
    failed = builders.a_call(acme, "running", arguments=ARGUMENTS | {"n": 3}, tool=tool)
    builders.report(failed, Cause.VALIDATION, Meaning.REFUSED,
                    message=f"{CANARIES['a pointer']} refused: {TEXT}")  # fmt: skip
    return ambiguous, done, failed


def pages_of(calls: tuple[ToolCall, ...]) -> list[str]:
    incident = ids.shown("incident", Incident.objects.get().id)
    session = ids.shown("session", calls[0].session_id)
    return [
        "/", "/calls", "/inbox", "/audit", "/tools", "/tools/charge", "/sessions", "/approvals",
        f"/sessions/{session}", f"/sessions/{session}/rendering", f"/incidents/{incident}",
        f"/parts/incidents/{incident}", f"/incidents/{incident}/resolution",
        *(f"/calls/{ids.shown('call', each.id)}{rest}" for each in calls
          for rest in ("", "/attempts/1", "/arguments", "/arguments?view=raw", "/reveal")),
        f"/calls/{ids.shown('call', calls[1].id)}/result",
        *(f"/evidence/{ids.shown('evidence', Evidence.objects.get().id)}{rest}"
          for rest in ("", "/body", "/body?view=raw")),
    ]  # fmt: skip


def answers_of(calls: tuple[ToolCall, ...]) -> list[str]:
    incident = Incident.objects.get()
    call = [ids.shown("call", each.id) for each in calls]
    return [
        "/calls", "/incidents", f"/incidents/{ids.shown('incident', incident.id)}", "/tools",
        "/tools/charge", "/policies", "/budgets", f"/calls/{call[0]}/file",
        f"/evidence/{ids.shown('evidence', Evidence.objects.get().id)}",
        *(f"/calls/{each}{rest}" for each in call for rest in ("", "/events", "/attempts")),
    ]  # fmt: skip


def shown(client: Client, address: str) -> list[str]:
    answer = client.get(address)
    assert answer.status_code == 200, address
    text = answer.getvalue().decode()
    # What a page masks it cuts and marks afterwards, so line ends may stand otherwise.
    flat = re.sub(r"\s+", " ", text)
    return [f"{address}: {kind}" for kind, canary in CANARIES.items() if canary in flat]


def test_no_page_and_no_download_shows_a_canary(
    acme: cast.Acme, planted: tuple[ToolCall, ...]
) -> None:
    client = client_of(acme.olga)
    assert [each for page in pages_of(planted) for each in shown(client, page)] == []
    assert any("masked" in client.get(page).getvalue().decode() for page in pages_of(planted))


@pytest.mark.django_db(transaction=True)  # the answer is read in a thread of its own
def test_no_answer_to_a_login_shows_a_canary(
    acme: cast.Acme, planted: tuple[ToolCall, ...]
) -> None:
    client = client_of(acme.vera)
    found = [each for at in answers_of(planted) for each in shown(client, f"/api/v1{at}")]
    assert found == []


def test_the_exported_audit_shows_no_canary(acme: cast.Acme, planted: tuple[ToolCall, ...]) -> None:
    text = client_of(acme.olga).post("/audit/export").getvalue().decode()
    assert "masked (password)" in text
    assert [kind for kind, canary in CANARIES.items() if canary in text] == []


NUMBER = "canary-7-4711 0815"
"""Secret by a pointer of the tool's policy into its result, and by nothing else."""


def lost(call: ToolCall) -> list[dict[str, Any]]:
    """What an agent kept that asked for the call and lost everything after."""
    asked = conversations.a_call(call.tool_call_id, "charge", ARGUMENTS)
    return [conversations.says("Charge it."), conversations.asks(asked)]


def of_a_policy_that_hides(acme: cast.Acme) -> ToolCall:
    tool = builders.a_tool(acme, "charge", "side_effect", masked=["/result/number"],
                           input_schema={"properties": {"card": {"x-secret": True}}})  # fmt: skip
    turn = builders.a_turn(builders.a_session(acme))
    call = builders.a_call(acme, "running", arguments=ARGUMENTS, tool=tool, tool_call_id="call_1",
                           session_id=turn.session_id, turn_id=turn.id)  # fmt: skip
    builders.cross(call)
    builders.settle(call, {"number": NUMBER, "card": "•", "text": CANARIES["a pointer"]})
    return call


def secrets_in(text: str) -> list[str]:
    return [each for each in (*CANARIES.values(), NUMBER) if each in text]


@pytest.mark.django_db(transaction=True)
def test_a_repair_by_what_the_ledger_knows_gives_people_no_canary(acme: cast.Acme) -> None:
    call = of_a_policy_that_hides(acme)
    client, session = client_of(acme.vera), ids.shown("session", call.session_id)
    pasted = {"format": "openai-chat", "transcript": lost(call)}
    form = pasted | {"transcript": json.dumps(lost(call)), "profile": "anthropic"}
    at = f"/sessions/{session}/repair"
    page = client.post(at, form | {"deed": "show"}).content.decode()
    given = [
        client.post(at, form | {"deed": "download"}),
        client.get(f"/sessions/{session}/rendering"),
        client.post("/api/v1/transcripts/repair", pasted | {"session": session},
                    content_type="application/json"),
    ]  # fmt: skip
    for answer in given:
        text = answer.content.decode()
        assert answer.status_code == 200, text
        assert "masked (number)" in text
        assert secrets_in(text) == []
    # What was typed stands in the form again; the copy stands below it.
    assert "masked (number)" in page
    assert secrets_in(page.partition('id="report"')[2]) == []


@pytest.mark.django_db(transaction=True)
def test_an_import_shows_people_no_canary_and_its_agent_all_of_it(acme: cast.Acme) -> None:
    of_a_policy_that_hides(acme)
    key = f"Bearer {keys.issue(agent=acme.ada, scopes=keys.SCOPES)}"
    ada = Client(headers={"Authorization": key, "Idempotency-Key": "k"})
    told = [
        conversations.says("Charge it."),
        conversations.asks(conversations.a_call("c1", "charge", ARGUMENTS)),
        conversations.answers("c1", json.dumps({"number": NUMBER})),
        conversations.answers("c2", f"Charged {CANARIES['a pointer']}."),
    ]
    body = {"format": "openai-chat", "transcript": told}
    made = ada.post("/api/v1/imports", body, content_type="application/json").json()
    client = client_of(acme.vera)
    for word in ("", "/original", "/transcript", "/difference"):
        path = f"/imports/{made['id']}{word}"
        assert secrets_in(client.get(f"/api/v1{path}").getvalue().decode()) == [], path
    for word in ("", "/original", "/copy"):
        assert secrets_in(client.get(f"/imports/{made['id']}{word}").getvalue().decode()) == []
    assert json.loads(ada.get(f"/api/v1/imports/{made['id']}/original").content) == told


def test_a_preview_shows_no_canary(acme: cast.Acme) -> None:
    tool = builders.a_tool(acme, "pay", "idempotent_write", key_template="{password}",
                           retry={"attempts": 1},
                           input_schema={"properties": {"card": {"x-secret": True}}})  # fmt: skip
    call = builders.a_call(acme, "ambiguous", arguments=ARGUMENTS, tool=tool)
    incident = Incident.objects.get(call=call)
    client = client_of(acme.olga)
    at = f"/incidents/{ids.shown('incident', incident.id)}/resolution"
    page = client.post(at, {"answer": "retry_same_key", "grounds": "Same key.", "step": "preview",
                            "version": 1})  # fmt: skip
    text = page.content.decode()
    assert "Outside" in text
    assert [kind for kind, canary in CANARIES.items() if canary in text] == []


QUOTED = f"The list has the card {CANARIES['a pointer']}."


def quoting(acme: cast.Acme, **policy: Any) -> tuple[ToolCall, Evidence]:
    """A call whose argument is secret by a pointer, and evidence that quotes it."""
    tool = builders.a_tool(acme, "charge", "side_effect", masked=["/arguments/card"], **policy)
    call = builders.a_call(acme, "ambiguous", arguments=ARGUMENTS, tool=tool)
    builders.unlock_denial(call)
    found = statements.Found(kind="checked", finding="happened", message=QUOTED, reference=QUOTED,
                             body=QUOTED)  # fmt: skip
    by = cast.as_decider(acme.olga)
    return call, statements.state_evidence(call_id=call.id, found=found, by=by)


def names_no_card(text: str) -> bool:
    """Whether the page quotes the words around the card, and the card is masked."""
    return "The list has the card" in text and CANARIES["a pointer"] not in text


@pytest.mark.django_db(transaction=True)
def test_evidence_that_quotes_a_secret_argument_is_masked_wherever_it_stands(
    acme: cast.Acme,
) -> None:
    call, piece = quoting(acme)
    evidence = f"/evidence/{ids.shown('evidence', piece.id)}"
    incident = f"/incidents/{ids.shown('incident', Incident.objects.get(call=call).id)}"
    client = client_of(acme.olga)
    for address in (incident, f"{incident}/resolution", f"/api/v1{incident}", "/audit",
                    evidence, f"{evidence}/body", f"/api/v1{evidence}",
                    f"/api/v1/calls/{ids.shown('call', call.id)}/file"):  # fmt: skip
        assert names_no_card(client.get(address).getvalue().decode()), address
    assert names_no_card(client.post("/audit/export").content.decode())


def test_a_second_person_reads_no_secret_that_grounds_or_evidence_quote(acme: cast.Acme) -> None:
    call, piece = quoting(acme, second_person="always")
    asked = decide(acme, call, "happened", evidence=(piece.id,), grounds=QUOTED)
    client = client_of(cast.a_person("amy", acme.workspace, "approver"))
    assert CANARIES["a pointer"] not in client.get("/approvals").content.decode()
    page = client.get(f"/approvals/{ids.shown('resolution', asked.id)}").content.decode()
    assert names_no_card(page)
    assert page.count("The list has the card") == 2


def test_who_decided_otherwise_reads_no_secret_of_what_was_recorded(acme: cast.Acme) -> None:
    call, piece = quoting(acme)
    version = version_of(call)
    decide(acme, call, "happened", evidence=(piece.id,), grounds=QUOTED)
    omar = client_of(cast.a_person("omar", acme.workspace, "operator"))
    answer = send(omar, call, typed(call, "abandon", version=version, step="record",
                                    confirm="charge 1", grounds="It cannot be known."))  # fmt: skip
    page = answer.content.decode()
    assert "Not saved" in page
    assert names_no_card(page)
    assert page.count("The list has the card") == 2


def test_the_answer_to_a_held_call_shows_no_secret_that_its_grounds_quote(acme: cast.Acme) -> None:
    tool = builders.a_tool(acme, "charge", "side_effect", masked=["/arguments/card"])
    turn = builders.a_turn(builders.a_session(acme))
    place: dict[str, Any] = {"session_id": turn.session_id, "turn_id": turn.id}
    builders.a_call(acme, "ambiguous", tool_call_id="t1", **place)
    builders.answer_to(
        builders.a_submit(acme, tool, tool_call_id="t2", arguments=ARGUMENTS, **place)
    )
    hold = Interrupt.objects.get(ended_at__isnull=True)
    page = client_of(cast.a_person("amy", acme.workspace, "approver")).post(
        f"/interrupts/{hold.id}", {"answer": "reject", "grounds": QUOTED, "once": "k"}, follow=True
    )
    assert names_no_card(page.content.decode())
