"""POST /calls over the wire: recorded once, replayed, refused with nothing recorded."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ledger.models import Tool, ToolCall
from tests import builders, cast
from tests.api.callers import Caller, the_problem
from tests.api.served import Served
from tests.waits import until

SUBMIT = {"tool": "sandbox.lookup", "arguments": {"name": "opening-hours"}}


def submit(**changes: Any) -> dict[str, Any]:
    return {**SUBMIT, **changes}


def test_a_submit_answers_201_with_the_call_and_its_address(ada: Caller, lookup: Tool) -> None:
    answer = ada.post("/calls", submit())

    call = answer.json()
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"/api/v1/calls/{call['id']}"
    assert answer.headers["ETag"] == 'W/"2"'
    assert (call["state"], call["effect"], call["settled"]) == ("scheduled", "none", False)
    assert (call["next_action"], call["retryable"], call["replayed"]) == ("wait", False, False)
    assert call["arguments"] == SUBMIT["arguments"]


def test_the_same_key_and_arguments_replay_the_same_call(ada: Caller, lookup: Tool) -> None:
    key = {"Idempotency-Key": "intent-1"}
    first = ada.post("/calls", submit(), headers=key)
    second = ada.post("/calls", submit(), headers=key)

    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["id"] == first.json()["id"]
    assert second.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert second.json()["replayed"] is True
    assert ToolCall.objects.count() == 1


def test_the_same_key_in_the_body_names_the_same_intent(ada: Caller, lookup: Tool) -> None:
    first = ada.post("/calls", submit(), headers={"Idempotency-Key": "intent-1"})
    second = ada.post("/calls", submit(idempotency_key="intent-1"))

    assert second.json()["id"] == first.json()["id"]


def test_the_same_key_with_other_arguments_is_refused_and_names_the_first_digest(
    ada: Caller, lookup: Tool
) -> None:
    key = {"Idempotency-Key": "intent-1"}
    first = ada.post("/calls", submit(arguments={"n": 1}), headers=key)
    other = ada.post("/calls", submit(arguments={"n": 1.0}), headers=key)

    problem = the_problem(other, 409, "key_reused")
    assert first.json()["arguments_sha256"] in problem["detail"]
    assert ToolCall.objects.count() == 1


def test_two_workspaces_may_use_the_same_key(
    ada: Caller, mallory: Caller, lookup: Tool, globex: cast.Globex
) -> None:
    builders.a_tool(globex, "sandbox.lookup", "read_only")
    key = {"Idempotency-Key": "intent-1"}

    answers = [who.post("/calls", submit(), headers=key) for who in (ada, mallory)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert len({answer.json()["id"] for answer in answers}) == 2


def test_fifty_equal_submits_at_once_give_one_call(ada: Caller, web: Served, lookup: Tool) -> None:
    def go(_: int) -> tuple[int, str]:
        caller = Caller(web.address, Authorization=ada.http.headers["Authorization"])
        answer = caller.post("/calls", submit(), headers={"Idempotency-Key": "race"})
        caller.close()
        return answer.status_code, answer.json()["id"]

    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(go, range(50)))

    assert len({call for _, call in answers}) == 1
    assert Counter(status for status, _ in answers) == {201: 1, 200: 49}
    assert ToolCall.objects.count() == 1


def test_a_batch_answers_each_item_in_order(ada: Caller, lookup: Tool) -> None:
    named = submit(idempotency_key="a")
    wishes = [named, submit(tool="sandbox.lockup"), named]

    answer = ada.post("/calls", {"calls": wishes})

    first, unknown, again = answer.json()["items"]
    assert answer.status_code == 201
    assert unknown["code"] == "tool_unknown"
    assert "sandbox.lookup" in unknown["detail"]
    assert again["id"] == first["id"]
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert ToolCall.objects.count() == 1


def test_a_batch_repeated_under_its_header_gives_the_same_calls(ada: Caller, lookup: Tool) -> None:
    batch = {"calls": [submit(arguments={"n": n}) for n in range(3)]}
    key = {"Idempotency-Key": "batch-1"}

    first, second = (ada.post("/calls", batch, headers=key) for _ in range(2))

    assert (first.status_code, second.status_code) == (201, 200)
    assert [c["id"] for c in second.json()["items"]] == [c["id"] for c in first.json()["items"]]
    assert ToolCall.objects.count() == 3


def test_a_batch_of_refusals_is_refused(ada: Caller, lookup: Tool) -> None:
    answer = ada.post("/calls", {"calls": [submit(tool="nothing"), submit(tool="nobody")]})

    assert answer.status_code == 422
    assert [item["status"] for item in answer.json()["items"]] == [422, 422]
    assert not ToolCall.objects.exists()


def test_the_longest_key_of_a_batch_leaves_room_for_the_places(ada: Caller, lookup: Tool) -> None:
    batch = {"calls": [submit(), submit()]}

    fits = ada.post("/calls", batch, headers={"Idempotency-Key": "k" * 253})
    too_long = ada.post("/calls", batch, headers={"Idempotency-Key": "k" * 254})

    assert fits.status_code == 201
    the_problem(too_long, 422, "validation")
    assert ToolCall.objects.count() == 2


def test_keys_of_1_to_255_characters_are_kept_as_sent(ada: Caller, lookup: Tool) -> None:
    longest = ada.post("/calls", submit(), headers={"Idempotency-Key": "k" * 255})
    odd = ada.post("/calls", submit(idempotency_key=" Größe/日本 \t"))

    assert longest.json()["idempotency_key"] == "k" * 255
    assert odd.json()["idempotency_key"] == " Größe/日本 \t"
    the_problem(
        ada.post("/calls", submit(), headers={"Idempotency-Key": "k" * 256}), 422, "validation"
    )
    the_problem(ada.post("/calls", submit(), headers={"Idempotency-Key": ""}), 422, "validation")


def test_the_place_in_the_models_reply_is_a_key_by_itself(
    ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    session = ada.post("/sessions", {}).json()["id"]
    wish = submit(session=session, tool_call_id="toolu_1", model_step=3, position=1)

    first, second = (ada.post("/calls", wish) for _ in range(2))
    drifted = ada.post("/calls", wish | {"arguments": {"n": 2}})

    assert first.json()["id"] == second.json()["id"]
    the_problem(drifted, 409, "key_reused")


def test_what_a_submit_says_of_recovery_is_ignored(ada: Caller, acme: cast.Acme) -> None:
    builders.a_tool(acme, "pay", "side_effect")
    forged = {
        "recovery_class": "read_only",
        "annotations": {"readOnlyHint": True},
        "timeouts": {"schedule_to_close_s": 1},
        "state": "succeeded",
    }

    call = ada.post("/calls", submit(tool="pay", **forged)).json()

    assert (call["recovery_class"], call["state"]) == ("side_effect", "scheduled")


def test_arguments_that_do_not_fit_the_schema_are_named_by_pointer(
    ada: Caller, acme: cast.Acme
) -> None:
    integers = {"type": "array", "items": {"type": "integer"}}
    schema = {"type": "object", "properties": {"a": integers}}
    builders.a_tool(acme, "strict", "read_only", input_schema=schema)

    answer = ada.post("/calls", submit(tool="strict", arguments={"a": [1, "canary-4711"]}))

    problem = the_problem(answer, 422, "validation")
    assert problem["errors"][0]["pointer"] == "/arguments/a/1"
    assert "canary-4711" not in answer.text
    assert not ToolCall.objects.exists()


def test_a_switched_off_tool_rejects_and_says_so(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "rejected")

    answer = ada.post("/calls", submit(tool=call.tool))

    assert answer.status_code == 201
    assert (answer.json()["state"], answer.json()["reason"]) == ("rejected", "switched_off")
    assert answer.json()["next_action"] == "nothing"


def test_a_closed_turn_takes_no_call(ada: Caller, lookup: Tool) -> None:
    session = ada.post("/sessions", {}).json()["id"]
    turn = ada.post(f"/sessions/{session}/turns", {}).json()["id"]
    ada.post(f"/sessions/{session}/turns/{turn}/end", {"closed_as": "answered"})

    answer = ada.post("/calls", submit(session=session, turn=turn))

    the_problem(answer, 409, "turn_closed")
    assert not ToolCall.objects.exists()


def test_a_stale_epoch_and_another_binding_are_refused(ada: Caller, lookup: Tool) -> None:
    session = ada.post("/sessions", {"host": "box-1"}).json()["id"]

    stale = ada.post("/calls", submit(session=session, epoch=0))
    elsewhere = ada.post("/calls", submit(session=session, host="box-2"))

    the_problem(stale, 409, "stale_epoch")
    the_problem(elsewhere, 409, "binding_drift")
    assert not ToolCall.objects.exists()


def test_a_session_of_another_agent_reads_as_absent(
    ada: Caller, mallory: Caller, globex: cast.Globex
) -> None:
    builders.a_tool(globex, "sandbox.lookup", "read_only")
    session = ada.post("/sessions", {}).json()["id"]

    the_problem(mallory.post("/calls", submit(session=session)), 404, "not_found")


def test_a_full_queue_says_when_to_come_again(ada: Caller, acme: cast.Acme) -> None:
    tool = builders.a_tool(acme, "slow", "read_only")
    call = builders.a_call(acme, "scheduled", tool=tool)
    ToolCall.objects.filter(id=call.id).update(published_at="2020-01-01T00:00:00Z")

    def refused() -> bool:
        return ada.post("/calls", submit(tool="slow")).status_code == 429

    # The waits are read once a second at most.
    until(refused, what="a full queue is seen", limit_s=5)
    answer = ada.post("/calls", submit(tool="slow"))

    the_problem(answer, 429, "rate_limited")
    assert int(answer.headers["Retry-After"]) >= 1
