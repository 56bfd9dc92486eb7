"""Asking the outside whether the effect of a call happened."""

import pytest

from executors.http.executor import HttpExecutor
from ledger.vocabulary import AttemptKind, ProbeFinding
from tests.executors.http.loopback import a_tool, an_effect, raw_reply, reply, serving
from tests.executors.recording_context import RecordingContext

EXECUTOR = HttpExecutor(secrets={"key": "canary-0123456789"})
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def probing(server, **changes):
    probe = {
        "url": server.url + "/orders?ref={marker}",
        "happened": {"status": [200], "pointer": "/orders/0/ref", "equals": "{marker}"},
        "did_not_happen": {"status": [200], "pointer": "/orders", "empty": True},
        "in_progress": {"status": [200], "pointer": "/state", "equals": "pending"},
        "result": "/orders/0",
        "authoritative": True,
    }
    config = a_tool(server, probe={**probe, **changes}, headers={"X-Api-Key": {"$secret": "key"}})
    return an_effect(
        config, kind=AttemptKind.PROBE, marker="m-1", crossed=True, traceparent=TRACEPARENT
    )


def probe(script, **changes):
    with serving(script) as server:
        assignment = probing(server, **changes)
        return EXECUTOR.probe(assignment, RecordingContext(assignment))


def test_a_probe_reads_with_the_marker_and_crosses_nothing():
    with serving(reply(200, {"orders": []})) as server:
        assignment = probing(server)
        context = RecordingContext(assignment)
        EXECUTOR.probe(assignment, context)
        (got,) = server.requests
    assert (got.method, got.path) == ("GET", "/orders?ref=m-1")
    assert "idempotency-key" not in got.headers
    assert context.verbs == []


def test_a_probe_carries_the_trace_of_its_own_attempt():
    with serving(reply(200, {"orders": []})) as server:
        assignment = probing(server)
        EXECUTOR.probe(assignment, RecordingContext(assignment))
        (got,) = server.requests
    assert got.headers["traceparent"] == TRACEPARENT


def test_an_effect_that_is_found_happened_and_brings_its_result():
    answer = probe(reply(200, {"orders": [{"ref": "m-1", "id": 7}]}))
    assert answer.finding is ProbeFinding.HAPPENED
    assert answer.result.body == b'{"ref": "m-1", "id": 7}'


def test_an_effect_of_another_call_is_not_this_one():
    answer = probe(reply(200, {"orders": [{"ref": "m-2"}]}))
    assert answer.finding is ProbeFinding.UNKNOWN


def test_an_empty_list_says_that_it_did_not_happen():
    answer = probe(reply(200, {"orders": []}))
    assert (answer.finding, answer.evidence["authoritative"]) == (
        ProbeFinding.DID_NOT_HAPPEN,
        True,
    )
    assert answer.result is None


def test_work_that_is_pending_is_in_progress():
    assert probe(reply(200, {"state": "pending"})).finding is ProbeFinding.IN_PROGRESS


def test_two_conditions_that_hold_at_once_say_nothing():
    answer = probe(reply(200, {"state": "pending", "orders": []}))
    assert answer.finding is ProbeFinding.UNKNOWN


def test_a_status_alone_may_say_that_it_did_not_happen():
    answer = probe(reply(404, b"<html>none</html>"), did_not_happen={"status": [404]})
    assert answer.finding is ProbeFinding.DID_NOT_HAPPEN


def cut_404(talk):
    talk.read_request()
    talk.send(raw_reply(404, b"<html>none</html>")[:-4])


SAYS_NOTHING = {
    "refused": reply(401),
    "a server error": reply(500, {"orders": []}),
    "not JSON": reply(200, b"<html>"),
    "an orderly end": lambda talk: talk.read_request(),
    "a reset": lambda talk: (talk.read_request(), talk.reset()),
    "cut": lambda talk: (
        talk.read_request(),
        talk.send(raw_reply(200, b'{"orders": []}')[:-1]),
    ),
    "a refusal that is cut": cut_404,
    "a redirect to a private address": reply(302, location="http://10.0.0.1/"),
}


@pytest.mark.parametrize("script", SAYS_NOTHING.values(), ids=SAYS_NOTHING)
def test_a_probe_that_cannot_tell_says_unknown(script):
    answer = probe(
        script, did_not_happen={"status": [200, 404], "pointer": "/orders", "empty": True}
    )
    assert answer.finding is ProbeFinding.UNKNOWN
    assert answer.message


def test_a_cut_answer_never_says_that_it_did_not_happen():
    assert probe(cut_404, did_not_happen={"status": [404]}).finding is ProbeFinding.UNKNOWN


def test_a_probe_that_takes_too_long_says_unknown():
    with serving(lambda talk: talk.wait_for_peer_to_leave()) as server:
        assignment = probing(server)
        answer = EXECUTOR.probe(assignment, RecordingContext(assignment, remaining=0.3))
    assert answer.finding is ProbeFinding.UNKNOWN


def test_a_tool_without_a_probe_says_unknown():
    with serving(reply(200)) as server:
        assignment = an_effect(a_tool(server))
        answer = EXECUTOR.probe(assignment, RecordingContext(assignment))
        assert server.connections == 0
    assert answer.finding is ProbeFinding.UNKNOWN


def test_what_the_probe_was_answered_is_kept_without_the_secret():
    answer = probe(reply(200, {"you sent": "canary-0123456789", "long": "a" * 5000}))
    assert "[secret key]" in answer.evidence["answer"]
    assert "canary-0123456789" not in repr(answer)
    assert len(answer.evidence["answer"]) <= 2048
