"""What people say, what models reply, and the user's interruption, over HTTP."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import httpx2
import pytest

from ledger.models import Message, ToolCall, Turn
from recovery import turns
from tests import builders, cast, threads, waits
from tests.api.callers import Caller, the_problem

HELLO = {"format": "openai-chat", "message": {"role": "user", "content": "Mail the report."}}


def asking(*calls: tuple[str, str, Any], text: str | None = None) -> dict[str, Any]:
    """A reply of OpenAI's chat with these calls: id, name, arguments."""
    asked = [
        {"id": id_, "type": "function",
         "function": {"name": name, "arguments": a if isinstance(a, str) else json.dumps(a)}}
        for id_, name, a in calls
    ]  # fmt: skip
    message = {"role": "assistant", "content": text, "tool_calls": asked}
    return {"format": "openai-chat", "reply": message}


def together(acts: Sequence[Callable[[], httpx2.Response]]) -> list[httpx2.Response]:
    """The answers to requests that are sent at once."""
    answers = threads.at_once(acts)
    assert all(isinstance(each, httpx2.Response) for each in answers), answers
    return answers  # type: ignore[return-value]


@pytest.fixture
def turn(ada: Caller) -> str:
    """The address of a new turn of Ada's, opened with its prompt."""
    turns_ = f"/sessions/{ada.post('/sessions', {}).json()['id']}/turns"
    opened = ada.post(turns_, {"key": "q1", **HELLO})
    assert opened.status_code == 201, opened.text
    return f"{turns_}/{opened.json()['id']}"


@pytest.fixture
def mail(acme: cast.Acme) -> str:
    return builders.a_tool(acme, "mail", "read_only").name


def test_a_turn_and_a_reply_say_that_they_were_made_before(
    ada: Caller, turn: str, mail: str
) -> None:
    opened_again = ada.post(turn.rpartition("/")[0], {"key": "q1", **HELLO})
    assert opened_again.status_code == 200, opened_again.text
    assert opened_again.headers["Idempotent-Replayed"] == "true"
    reply = asking(("c1", mail, {"path": "a"}))
    first, again = (ada.post(f"{turn}/replies", reply) for _ in range(2))
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"


def test_a_turn_is_opened_with_its_prompt(ada: Caller, turn: str) -> None:
    found = ada.get(f"{turn}/messages").json()["items"]
    assert [(m["role"], m["parts"]) for m in found] == [("user", [{"text": "Mail the report."}])]
    session = turn.split("/turns")[0]
    assert ada.get(session).json()["version"] == 1


def test_a_reply_is_recorded_with_its_calls(ada: Caller, turn: str, mail: str) -> None:
    body = asking(("c1", mail, {"path": "a"}), ("c2", "mial", {}), ("c3", mail, '{"pa'))
    first, again = ada.post(f"{turn}/replies", body), ada.post(f"{turn}/replies", body)

    calls = first.json()["calls"]
    assert (first.status_code, again.status_code) == (201, 200)
    assert [c.get("state") or c["code"] for c in calls] == ["scheduled", "tool_unknown", "cut_off"]
    assert [c["tool_call_id"] for c in calls] == ["c1", "c2", "c3"]
    assert again.json()["message"] == first.json()["message"]
    assert [c.get("id") for c in again.json()["calls"]] == [calls[0]["id"], None, None]
    assert again.json()["calls"][0]["replayed"]
    assert ToolCall.objects.count() == 1


def test_another_reply_of_the_same_step_is_refused(ada: Caller, turn: str, mail: str) -> None:
    ada.post(f"{turn}/replies", asking(("c1", mail, {})) | {"model_step": 0})
    other = ada.post(f"{turn}/replies", asking(("c9", mail, {})) | {"model_step": 0})
    the_problem(other, 409, "step_taken")


def test_two_replies_for_one_step_at_once_leave_one(ada: Caller, turn: str, mail: str) -> None:
    bodies = [asking((f"c{n}", mail, {"n": n})) | {"model_step": 0} for n in range(4)]
    answers = together([partial(ada.post, f"{turn}/replies", body) for body in bodies])

    assert sorted(each.status_code for each in answers) == [201, 409, 409, 409]
    assert Message.objects.filter(role="assistant").count() == ToolCall.objects.count() == 1


def test_the_same_reply_many_times_at_once_is_one(ada: Caller, turn: str, mail: str) -> None:
    body = asking(("c1", mail, {"path": "a"}), ("c2", mail, {"path": "b"}))
    answers = together([lambda: ada.post(f"{turn}/replies", body)] * 4)

    assert sorted(each.status_code for each in answers) == [200, 200, 200, 201]
    assert len({json.dumps([c["id"] for c in a.json()["calls"]]) for a in answers}) == 1
    assert ToolCall.objects.count() == 2


def test_a_doubled_prompt_many_times_at_once_is_one_turn(ada: Caller) -> None:
    turns_ = f"/sessions/{ada.post('/sessions', {}).json()['id']}/turns"
    answers = together([lambda: ada.post(turns_, {"key": "q1", **HELLO})] * 5)

    assert sorted(each.status_code for each in answers) == [200, 200, 200, 200, 201]
    assert len({each.json()["id"] for each in answers}) == 1
    assert (Turn.objects.count(), Message.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({**HELLO}, "turn_open", "opened with this very prompt"),
        ({"key": "q2"}, "turn_open", "still open. Nothing"),
        ({"key": "q1", "model": "m-2"}, "turn_open", "still open"),
        (
            {"key": "q1", "format": "openai-chat", "message": {"role": "user", "content": "No."}},
            "key_reused",
            "another prompt",
        ),
    ],
    ids=["same words", "another prompt", "another model", "other words"],
)
def test_in_mid_turn_nothing_else_begins(
    body: dict[str, Any], code: str, words: str, ada: Caller, turn: str
) -> None:
    problem = the_problem(ada.post(turn.rsplit("/", 1)[0], body), 409, code)
    assert words in problem["detail"]
    assert Turn.objects.count() == 1


def test_a_doubled_prompt_is_reported_in_the_turns_events(ada: Caller, turn: str) -> None:
    ada.post(turn.rsplit("/", 1)[0], HELLO)
    said = ada.post(f"{turn}/messages", HELLO).json()

    assert said["repeated"] == [said["messages"][0]["id"]]
    events = ada.get(f"{turn}/events").json()["items"]
    assert [each["kind"] for each in events] == ["prompt.repeated"] * 2


def test_a_key_makes_a_message_once(ada: Caller, turn: str) -> None:
    body = {"format": "openai-chat", "key": "m1", "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "And Sunday?"},
    ]}  # fmt: skip
    first, again = (ada.post(f"{turn}/messages", body) for _ in range(2))
    other = ada.post(f"{turn}/messages", body | {"messages": body["messages"][:1]})

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["messages"] == first.json()["messages"]
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    the_problem(other, 409, "key_reused")


# Results are no messages


def result(id_: str, text: str) -> dict[str, Any]:
    return {"format": "openai-chat", "message": {"role": "tool", "tool_call_id": id_,
                                                 "content": text}}  # fmt: skip


def test_a_result_for_an_unknown_call_is_refused_by_name(ada: Caller, turn: str) -> None:
    problem = the_problem(ada.post(f"{turn}/messages", result("c7", "42")), 404, "not_found")
    assert "'c7'" in problem["detail"]
    assert Message.objects.count() == 1


@pytest.mark.parametrize(("text", "equal"), [('{ "rows": 3 }', True), ('{"rows": 4}', False)])
def test_a_result_for_a_known_call_is_ignored_with_a_record(
    text: str, equal: bool, ada: Caller, turn: str, mail: str
) -> None:
    ada.post(f"{turn}/replies", asking(("c1", mail, {})))
    call = ToolCall.objects.get()
    builders.claimed(call)
    builders.settle(call, {"rows": 3})

    said = ada.post(f"{turn}/messages", result("c1", text)).json()

    assert (said["messages"], said["ignored"][0]["equal"]) == ([], equal)
    facts = ada.get(f"{turn}/events").json()["items"][0]["facts"]
    assert facts["calls"][0]["equal"] is equal
    assert not Message.objects.exclude(role__in=Message.ROLES).exists()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("messages", {"format": "openai-chat"}),
        ("messages", {"format": "telegram", "message": {"role": "user", "content": "a"}}),
        ("messages", {"format": "openai-chat", "message": {"role": "owl", "content": "a"}}),
        ("messages", {"format": "openai-chat", "message": {"role": "assistant", "content": "a"}}),
        ("replies", {"format": "openai-chat", "reply": {"role": "user", "content": "a"}}),
        ("replies", {"format": "openai-chat", "reply": []}),
        ("replies", asking(("c" * 300, "mail", {}))),
        ("interruption", {"grace_s": 31}),
        ("interruption", {"said_until": -1}),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_stored(
    path: str, body: dict[str, Any], ada: Caller, turn: str
) -> None:
    the_problem(ada.post(f"{turn}/{path}", body), 422, "validation")
    assert (Message.objects.count(), ToolCall.objects.count()) == (1, 0)


def test_turns_of_others_read_as_absent(ada: Caller, mallory: Caller, turn: str) -> None:
    for path, body in (
        ("messages", HELLO),
        ("replies", asking(text="Done.")),
        ("interruption", {}),
    ):
        the_problem(mallory.post(f"{turn}/{path}", body), 404, "not_found")
    for path in ("messages", "events"):
        the_problem(mallory.get(f"{turn}/{path}"), 404, "not_found")


# The interruption


def test_an_interruption_says_what_becomes_of_each_call(ada: Caller, turn: str, mail: str) -> None:
    ada.post(f"{turn}/replies", asking(("c1", mail, {"path": "a"}), ("c2", mail, {"path": "b"})))
    done, waits = ToolCall.objects.order_by("position")
    builders.claimed(done)
    builders.settle(done, {"rows": 3})

    answer = ada.post(f"{turn}/interruption", {"by": "user", "said_until": 12})

    found = answer.json()
    assert (answer.status_code, found["turn"]["closed_as"]) == (202, "interrupted")
    assert [found["kept"], found["cancelled"], found["clean"]] == [
        [f"call_{done.id.hex}"], [f"call_{waits.id.hex}"], False,
    ]  # fmt: skip
    assert ada.post(f"{turn}/interruption", {}).json() == found
    kinds = [each["kind"] for each in ada.get(f"{turn}/events").json()["items"]]
    assert kinds == ["turn.interrupted", "result.preserved", "turn.closed"]
    refused = ada.post(f"{turn}/replies", asking(("c3", mail, {})))
    the_problem(refused, 409, "turn_closed")


def test_waiting_on_a_batch_gives_what_is_settled_when_the_user_interrupts(
    ada: Caller, turn: str, mail: str, acme: cast.Acme
) -> None:
    session, _, turn_id = turn.removeprefix("/sessions/").partition("/turns/")
    calls = [{"tool": mail, "arguments": {"n": n}, "session": session, "turn": turn_id}
             for n in range(2)]  # fmt: skip

    def interrupt() -> httpx2.Response:
        waits.until(lambda: ToolCall.objects.count() == 2, what="both calls")
        first = ToolCall.objects.order_by("id").first()
        assert first is not None
        builders.claimed(first)
        return ada.post(f"{turn}/interruption", {})

    batch, interrupted = together([lambda: ada.post("/calls?wait=25", {"calls": calls}), interrupt])
    assert interrupted.json()["asked_to_stop"]
    assert sorted(each["state"] for each in batch.json()["items"]) == ["cancelled", "running"]
    assert batch.elapsed.total_seconds() < 15


def test_a_turn_whose_generation_failed_is_clean_only_without_calls(
    ada: Caller, turn: str, mail: str
) -> None:
    ada.post(f"{turn}/replies", asking(("c1", mail, {})))
    ended = ada.post(f"{turn}/end", {"closed_as": "generation_failed"}).json()
    assert (ended["closed_as"], ended["clean"]) == ("generation_failed", False)
    assert ToolCall.objects.get().state == "scheduled"

    second = ada.post(turn.rsplit("/", 1)[0], {"key": "q2"}).json()
    end = f"{turn.rsplit('/', 1)[0]}/{second['id']}/end"
    assert ada.post(end, {"closed_as": "generation_failed"}).json()["clean"] is True


def test_the_end_of_the_grace_closes_the_turn_by_itself(ada: Caller, turn: str, mail: str) -> None:
    ada.post(f"{turn}/replies", asking(("c1", mail, {})))
    builders.claimed(ToolCall.objects.get())
    found = ada.post(f"{turn}/interruption", {"grace_s": 0.0}).json()
    assert (found["turn"]["open"], found["turn"]["grace_until"] is not None) == (True, True)

    turns.close_due(10)

    assert ada.get(turn).json()["closed_as"] == "interrupted"
    assert ToolCall.objects.get().state == "cancelled"
