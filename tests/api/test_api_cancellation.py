"""Cancellation: at once where nothing runs, asked for where something does, refused at the end."""

import httpx2

from ledger import ids
from ledger.models import ToolCall
from tests import builders, cast
from tests.api.callers import Caller, the_problem


def cancel(who: Caller, call: ToolCall) -> httpx2.Response:
    return who.post(f"/calls/{ids.shown('call', call.id)}/cancellation")


def test_a_call_at_rest_is_cancelled_at_once(ada: Caller, acme: cast.Acme) -> None:
    for state in ("scheduled", "backing_off"):
        call = builders.a_call(acme, state)

        answer = cancel(ada, call)

        assert answer.status_code == 202
        assert (answer.json()["state"], answer.json()["effect"]) == ("cancelled", "not_begun")
        assert answer.json()["reason"] == "cancel_requested"


def test_a_running_call_is_asked_to_end_and_asking_twice_is_once(
    ada: Caller, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "running", crossed=True)

    answers = [cancel(ada, call) for _ in range(2)]

    assert [answer.json()["state"] for answer in answers] == ["running", "running"]
    assert answers[0].json()["cancel_requested"] is True
    assert call.events.filter(kind="cancel_requested").count() == 1


def test_a_settled_call_is_not_cancelled_any_more(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "succeeded")

    problem = the_problem(cancel(ada, call), 409, "already_settled")

    assert problem["current"] == {"state": "succeeded", "effect": "happened"}
    assert builders.fresh(call).state == "succeeded"


def test_cancelling_twice_is_no_error(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "cancelled")

    answer = cancel(ada, call)

    assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")


def test_an_agent_cancels_only_its_own_calls(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, agent=acme.ben)

    the_problem(cancel(ada, call), 404, "not_found")
    assert builders.fresh(call).state == "scheduled"
