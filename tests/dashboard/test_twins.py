"""Twins are named above the form; what happened partly, and old grounds, go through it."""

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from dashboard import twins
from ledger import ids
from ledger.models import ToolCall
from recovery.models import Resolution
from tests import builders, cast
from tests.dashboard.test_call_page import client_of
from tests.recovery.deciding import ambiguous, decide, found, incident_of, version_of

pytestmark = pytest.mark.django_db

SAME = {"to": "ada", "amount": "118.00"}


def two_alike(acme: cast.Acme, **more: Any) -> tuple[ToolCall, ToolCall]:
    """The same arguments twice in a session, the second on purpose."""
    session = builders.a_session(acme)
    tool = builders.a_tool(acme, "pay", "side_effect")
    fields: dict[str, Any] = {"tool": tool, "session_id": session.id, "arguments": SAME} | more
    first = builders.a_call(acme, "succeeded", **fields)
    return first, builders.a_call(acme, "ambiguous", repeat_intended=True, idempotency_key="k2",
                                  **fields)  # fmt: skip


def form_of(call: ToolCall, **typed: Any) -> dict[str, Any]:
    return {"once": uuid4().hex, "version": version_of(call), "step": "preview"} | typed


def at(call: ToolCall, rest: str = "") -> str:
    return f"/incidents/{ids.shown('incident', incident_of(call).id)}{rest}"


def test_a_call_with_the_same_arguments_in_the_session_is_named_above_the_form(
    acme: cast.Acme,
) -> None:
    first, second = two_alike(acme)
    page = client_of(acme.olga).get(at(second)).content.decode()
    assert page.index(ids.shown("call", first.id)) < page.index('id="deciding"')
    assert "the same arguments in this session" in page
    assert "has acted, or may have" in page


def test_a_call_of_other_arguments_tool_or_session_is_no_twin(acme: cast.Acme) -> None:
    first, _ = two_alike(acme)
    builders.a_call(acme, "scheduled", arguments=SAME)
    other = builders.a_session(acme)
    alone = builders.a_call(acme, "ambiguous", arguments=SAME, session_id=other.id)
    assert twins.of(alone) == []
    assert [each.why for each in twins.of(first)] == ["the same arguments in this session"]


def test_a_call_of_the_same_template_key_is_a_twin_wherever_it_was_asked(acme: cast.Acme) -> None:
    tool = builders.a_tool(acme, "put", "idempotent_write", key_template="path:{path}",
                           retry={"attempts": 1})  # fmt: skip
    one = builders.a_call(acme, "succeeded", tool=tool, arguments={"path": "/a", "n": 1})
    two = builders.a_call(acme, "running", tool=tool, arguments={"path": "/a", "n": 2})
    assert [each.call.id for each in twins.of(two)] == [one.id]
    assert twins.of(two)[0].why == "the same tool and key"


def test_partly_is_recorded_as_a_failure_after_its_effect_with_both_lists(
    acme: cast.Acme,
) -> None:
    call, client = ambiguous(acme, delivery_delay_s=0), client_of(acme.olga)
    evidence = an_evidence(acme, call)
    typed = {"answer": "partly", "done": "7 sent\n8 sent", "not_done": "9", "evidence": evidence,
             "grounds": "Seen in the outbox."}  # fmt: skip
    preview = client.post(at(call, "/resolution"), form_of(call, **typed)).content.decode()
    assert "Done: 7 sent; 8 sent. Not done: 9" in preview

    client.post(at(call, "/resolution"), form_of(call, **typed) | {"step": "record"})

    settled = builders.fresh(call)
    assert (settled.state, settled.effect) == ("failed", "happened")
    assert settled.error == "Done: 7 sent; 8 sent. Not done: 9"


def an_evidence(acme: cast.Acme, call: ToolCall) -> str:
    return ids.shown("evidence", found(call, "happened", cast.as_decider(acme.olga)).id)


def test_partly_with_one_list_stays_on_the_form_with_its_reason(acme: cast.Acme) -> None:
    call = ambiguous(acme)
    typed = {"answer": "partly", "done": "7 sent", "grounds": "Seen.",
             "evidence": an_evidence(acme, call)}  # fmt: skip
    answer = client_of(acme.olga).post(at(call, "/resolution"), form_of(call, **typed))
    assert answer.status_code == 422
    assert "what was done and what was not" in answer.content.decode()
    assert "7 sent</textarea>" in answer.content.decode()


def test_the_grounds_of_the_last_call_of_the_cause_are_offered_and_taken(acme: cast.Acme) -> None:
    decide(acme, ambiguous(acme), "abandon", grounds="The provider keeps no records.")
    call, client = ambiguous(acme), client_of(acme.olga)
    assert "The provider keeps no records." in client.get(at(call)).content.decode()

    record(client, call, again="yes", answer="abandon", confirm=f"{call.tool} 1")
    assert Resolution.objects.get(call=call).grounds == "The provider keeps no records."


def test_typed_grounds_go_before_the_offered_ones(acme: cast.Acme) -> None:
    decide(acme, ambiguous(acme), "abandon", grounds="The provider keeps no records.")
    call = ambiguous(acme)
    record(client_of(acme.olga), call, again="yes", answer="abandon", grounds="Another reason.",
           confirm=f"{call.tool} 1")  # fmt: skip
    assert Resolution.objects.get(call=call).grounds == "Another reason."


def record(client: Client, call: ToolCall, **typed: Any) -> None:
    answer = client.post(at(call, "/resolution"), form_of(call, **typed) | {"step": "record"})
    assert answer.status_code == 302, answer.content.decode()
