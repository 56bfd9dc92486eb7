"""Long work over HTTP: taking a handle, asking after it, asking to end it."""

from dataclasses import replace

import pytest

from executors.contract import Handle
from executors.http.executor import HttpExecutor
from ledger.vocabulary import AttemptKind, Cause, Meaning, RecoveryClass
from tests.executors.http.loopback import (
    a_tool,
    an_effect,
    gzipped,
    raw_reply,
    reply,
    serving,
)
from tests.executors.recording_context import RecordingContext

K, U = Meaning.KNOWN, Meaning.UNKNOWN
EXECUTOR = HttpExecutor(secrets={"key": "canary-0123456789"})


def a_job(server, **changes):
    poll = {
        "url": server.url + "/renders/{handle}",
        "done": {"pointer": "/state", "values": ["done", "finished"]},
        "failed": {"pointer": "/state", "equals": "broken"},
        "result": "/output",
        "after_s": 3,
    }
    cancel = {"url": server.url + "/renders/{handle}", "method": "DELETE"}
    return {"handle": "/render/id", "poll": {**poll, **changes}, "cancel": cancel}


def a_long_call(server, *, handle=None, headers=None, job=None, **poll):
    config = a_tool(server, job=job or a_job(server, **poll), headers=headers or {})
    kind = AttemptKind.POLL if handle else AttemptKind.RUN
    return an_effect(
        config,
        recovery_class=RecoveryClass.LONG_RUNNING,
        kind=kind,
        handle=Handle(value=handle, expires_in_s=600) if handle else None,
    )


def ask(verb, assignment, **settings):
    context = RecordingContext(assignment, **settings)
    return getattr(EXECUTOR, verb)(assignment, context), context


def polled(*scripts, **poll):
    with serving(*scripts) as server:
        return ask("poll", a_long_call(server, handle="r-7", **poll))[0]


def test_accepted_work_is_parked_with_its_handle():
    with serving(reply(202, {"render": {"id": "r-7"}})) as server:
        outcome, context = ask("run", a_long_call(server))
        assert outcome.handle == Handle(
            value="r-7", kind="http", endpoint=server.url, poll_after_s=3
        )
    assert context.verbs == ["cross", "store_handle"]
    assert context.handles == [outcome.handle]


def test_the_outside_may_say_when_to_ask_again():
    with serving(reply(202, {"render": {"id": 7}}, retry_after="9")) as server:
        outcome, _ = ask("run", a_long_call(server))
    assert (outcome.handle.value, outcome.handle.poll_after_s) == ("7", 9.0)


def test_a_handle_is_reported_even_by_an_attempt_that_lost_its_fence():
    with serving(reply(202, {"render": {"id": "r-7"}})) as server:
        outcome, context = ask("run", a_long_call(server), lose_fence_at="store_handle")
    assert outcome.handle.value == "r-7"
    assert context.handles == []


def test_work_that_is_done_at_once_is_settled_at_once():
    with serving(reply(200, {"done": True})) as server:
        outcome, context = ask("run", a_long_call(server))
    assert outcome.result.body == b'{"done": true}'
    assert context.handles == []


WITHOUT_A_HANDLE = {
    "no such member": reply(202, {"render": {}}),
    "an empty one": reply(202, {"render": {"id": ""}}),
    "a truth value": reply(202, {"render": {"id": True}}),
    "an object": reply(202, {"render": {"id": {"a": 1}}}),
    "not JSON": reply(202, b"accepted"),
    "cut": lambda talk: (talk.read_request(), talk.send(raw_reply(202, b'{"render": {"id"')[:-3])),
}


@pytest.mark.parametrize("script", WITHOUT_A_HANDLE.values(), ids=WITHOUT_A_HANDLE)
def test_accepted_work_without_a_handle_is_unknown_and_never_nothing(script):
    with serving(script) as server:
        outcome, context = ask("run", a_long_call(server))
    assert (outcome.cause, outcome.means) == (Cause.VANISHED, U)
    assert context.handles == []


def test_a_handle_may_be_the_address_that_a_header_names():
    with serving(
        reply(202, location="/operations/9?v=1"), reply(200, {"state": "done", "output": 1})
    ) as server:
        job = a_job(server)
        job = {**job, "handle_header": "Location", "poll": {**job["poll"], "url": "{handle}"}}
        del job["handle"]
        started, _ = ask("run", a_long_call(server, job=job))
        assert started.handle.value == f"{server.url}/operations/9?v=1"
        again = replace(a_long_call(server, job=job), handle=started.handle)
        outcome, _ = ask("poll", again)
        assert server.requests[1].path == "/operations/9?v=1"
    assert outcome.result.body == b"1"


def test_a_handle_that_is_an_address_elsewhere_is_not_asked():
    with serving(reply(200), address="127.0.0.7") as canary, serving(reply(200)) as server:
        job = a_job(server, url="{handle}")
        outcome, _ = ask("poll", a_long_call(server, handle=canary.url + "/x", job=job))
        assert canary.connections == 0
    assert outcome.cause is None
    assert outcome.handle is not None


def test_a_poll_that_finds_work_going_on_parks_again():
    outcome = polled(reply(200, {"state": "working"}))
    assert (outcome.cause, outcome.handle.value, outcome.handle.poll_after_s) == (None, "r-7", 3)


def test_a_poll_asks_with_the_handle_and_crosses_nothing():
    with serving(reply(200, {"state": "working"})) as server:
        assignment = a_long_call(
            server, handle="a/b c", headers={"Authorization": {"$secret": "key"}}
        )
        _, context = ask("poll", assignment)
        (got,) = server.requests
    assert (got.method, got.path, got.body) == ("GET", "/renders/a%2Fb%20c", b"")
    assert got.headers["authorization"] == "canary-0123456789"
    assert context.verbs == []


@pytest.mark.parametrize("state", ["done", "finished"])
def test_a_poll_that_finds_the_work_done_brings_its_result(state):
    outcome = polled(reply(200, {"state": state, "output": {"url": "x", "n": 1.0}}))
    assert (outcome.cause, outcome.means) == (None, K)
    assert outcome.result.body == b'{"url": "x", "n": 1.0}'


def test_a_poll_without_a_place_for_the_result_takes_the_whole_answer():
    outcome = polled(reply(200, {"state": "done"}), result=None)
    assert outcome.result.body == b'{"state": "done"}'


def test_work_that_is_done_without_a_result_is_done_all_the_same():
    outcome = polled(reply(200, {"state": "done"}))
    assert (outcome.cause, outcome.means) == (Cause.RESULT_UNREADABLE, K)
    assert outcome.result.body == b'{"state": "done"}'


def test_a_poll_that_finds_the_work_failed_is_a_known_error():
    outcome = polled(reply(200, {"state": "broken", "why": "no ink"}))
    assert (outcome.cause, outcome.means) == (Cause.TOOL_ERROR, K)
    assert b"no ink" in outcome.result.body


@pytest.mark.parametrize("status", [404, 410])
def test_a_handle_that_the_outside_does_not_know_has_vanished_and_proves_nothing(status):
    outcome = polled(reply(status, {"state": "done"}))
    assert (outcome.cause, outcome.means) == (Cause.VANISHED, U)
    assert outcome.evidence["reason"] == "handle_lost"


SAYS_NOTHING = {
    "a server error": reply(500),
    "a gateway timeout": reply(504),
    "busy": reply(429),
    "unreadable": reply(200, b"<html>"),
    "cut": lambda talk: (talk.read_request(), talk.send(raw_reply(200, b'{"state"')[:-3])),
    "a bomb": gzipped(bytes(30 * 1024 * 1024)),
    "closed": lambda talk: talk.read_request(),
    "reset": lambda talk: (talk.read_request(), talk.reset()),
}


@pytest.mark.parametrize("script", SAYS_NOTHING.values(), ids=SAYS_NOTHING)
def test_a_poll_that_brings_nothing_is_asked_again(script):
    outcome = polled(script)
    assert (outcome.cause, outcome.handle.value) == (None, "r-7")
    assert outcome.message or outcome.handle.poll_after_s == 3


def test_a_poll_of_a_server_that_is_away_is_asked_again():
    with serving(reply(200)) as server:
        pass
    outcome, _ = ask("poll", a_long_call(server, handle="r-7"))
    assert (outcome.cause, outcome.handle.value) == (None, "r-7")


def test_a_poll_that_is_told_to_wait_waits():
    assert polled(reply(503, retry_after="30")).handle.poll_after_s == 30.0


@pytest.mark.parametrize(
    ("status", "cause"), [(401, Cause.AUTH), (403, Cause.PERMISSION), (400, Cause.VALIDATION)]
)
def test_a_refused_poll_refuses_the_poll_and_not_the_work(status, cause):
    outcome = polled(reply(status, b"<html>"))
    assert (outcome.cause, outcome.means) == (cause, U)


def test_a_poll_without_a_handle_proves_nothing():
    with serving(reply(200)) as server:
        outcome, _ = ask("poll", a_long_call(server))
        assert server.connections == 0
    assert (outcome.cause, outcome.means) == (Cause.VANISHED, U)


def test_a_poll_of_a_tool_that_lost_its_configuration_proves_nothing():
    with serving(reply(200)) as server:
        assignment = a_long_call(server, handle="r-7")
        outcome, _ = ask("poll", replace(assignment, executor_config=a_tool(server)))
    assert (outcome.cause, outcome.means) == (Cause.INTERNAL, U)


@pytest.mark.parametrize("status", [200, 202, 204, 409, 500])
def test_a_request_to_end_the_work_proves_nothing_and_is_followed_by_a_poll(status):
    with serving(reply(status)) as server:
        outcome, _ = ask("cancel", a_long_call(server, handle="r-7"))
        assert (server.requests[0].method, server.requests[0].path) == ("DELETE", "/renders/r-7")
    assert (outcome.cause, outcome.handle.value) == (None, "r-7")
    assert str(status) in outcome.message


def test_a_request_to_end_work_that_is_not_known_there_says_so():
    with serving(reply(404)) as server:
        outcome, _ = ask("cancel", a_long_call(server, handle="r-7"))
    assert (outcome.cause, outcome.means) == (Cause.VANISHED, U)


def test_a_request_to_end_the_work_that_gets_no_answer_is_followed_by_a_poll():
    with serving(lambda talk: talk.reset()) as server:
        outcome, _ = ask("cancel", a_long_call(server, handle="r-7"))
    assert (outcome.cause, outcome.handle.value) == (None, "r-7")


def test_a_tool_that_names_no_way_to_end_its_work_goes_on():
    with serving(reply(200)) as server:
        job = a_job(server)
        del job["cancel"]
        outcome, _ = ask("cancel", a_long_call(server, handle="r-7", job=job))
        assert server.connections == 0
    assert outcome.handle.value == "r-7"


def test_a_handle_is_never_shown():
    with serving(reply(401)) as server:
        outcome, _ = ask("poll", a_long_call(server, handle="bearer-handle-0123"))
    assert "bearer-handle-0123" not in repr(outcome)
