"""What becomes of one attempt of an HTTP tool, whatever the outside does."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from executors.contract import FenceLost, Outcome
from executors.http.executor import HttpExecutor
from executors.http.wire import Network, tcp_connect
from ledger.vocabulary import Boundary, Cause, Meaning, RecoveryClass
from tests.executors.http.loopback import (
    a_read,
    a_tool,
    an_effect,
    gzipped,
    raw_reply,
    reply,
    serving,
)
from tests.executors.recording_context import RecordingContext

B, R, K, U = Meaning.NOT_BEGUN, Meaning.REFUSED, Meaning.KNOWN, Meaning.UNKNOWN
EXECUTOR = HttpExecutor(secrets={})
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def run(assignment, executor=EXECUTOR, **settings):
    context = RecordingContext(assignment, **settings)
    return executor.run(assignment, context), context


def became(outcome: Outcome):
    return outcome.cause, outcome.means


def test_an_effect_that_is_answered_well_has_a_result():
    with serving(reply(201, {"id": 7})) as server:
        outcome, context = run(an_effect(a_tool(server)))
        (got,) = server.requests
    assert (outcome.cause, outcome.result.body) == (None, b'{"id": 7}')
    assert outcome.result.media_type == "application/json"
    assert got.json == {"item": "tea"}
    assert context.verbs == ["cross"]


def test_an_effect_carries_its_key_and_its_marker():
    with serving(reply(200)) as server:
        run(an_effect(a_tool(server), idempotency_key="intent 1 ä%", marker="clearhouse-7"))
        (got,) = server.requests
    assert got.headers["idempotency-key"] == "intent%201%20%C3%A4%25"
    assert got.headers["clearhouse-call"] == "clearhouse-7"


@pytest.mark.parametrize("make", [an_effect, a_read])
def test_a_request_carries_the_trace_of_its_attempt(make):
    with serving(reply(200)) as server:
        run(make(a_tool(server), traceparent=TRACEPARENT))
        run(make(a_tool(server)))
        with_trace, without = server.requests
    assert with_trace.headers["traceparent"] == TRACEPARENT
    assert "traceparent" not in without.headers


def test_the_trace_does_not_go_along_to_another_host():
    with serving(reply(200), address="127.0.0.6") as other:
        with serving(reply(302, location=other.url)) as server:
            allow = {"private_hosts": [server.address, other.address], "schemes": ["http"],
                     "hosts": [server.address, other.address],
                     "ports": [server.port, other.port]}  # fmt: skip
            config = a_tool(server, method="GET", body="none", allow=allow)
            run(a_read(config, traceparent=TRACEPARENT))
            assert server.requests[0].headers["traceparent"] == TRACEPARENT
        (got,) = other.requests
    assert "traceparent" not in got.headers


def test_two_keys_never_look_the_same_on_the_wire():
    keys = ["é", "%C3%A9", "a b", "a%20b", "a\r\nb", "a%0D%0Ab", "a b "]
    with serving(reply(200)) as server:
        for key in keys:
            run(an_effect(a_tool(server), idempotency_key=key))
        assert len({got.headers["idempotency-key"] for got in server.requests}) == len(keys)


def test_every_attempt_sends_the_same_bytes():
    with serving(reply(200)) as server:
        run(an_effect(a_tool(server), arguments={"a": 1, "b": [1.0, "é"]}))
        run(an_effect(a_tool(server), arguments={"b": [1.0, "é"], "a": 1}, fence=2))
        first, second = server.requests
    assert (first.body, first.headers) == (second.body, second.headers)


def test_a_read_crosses_nothing_and_carries_no_key():
    with serving(reply(200)) as server:
        outcome, context = run(a_read(a_tool(server, method="GET", body="none")))
        assert "idempotency-key" not in server.requests[0].headers
    assert outcome.cause is None
    assert context.verbs == []


def test_the_boundary_is_crossed_after_the_connection_and_before_the_first_byte():
    seen = []

    def look(verb):
        server.wait_until(lambda: server.connections == 1)
        seen.append((verb, server.bytes_read))

    with serving(reply(200)) as server:
        run(an_effect(a_tool(server)), on_call=look)
        assert server.bytes_read > 0
    assert seen == [("cross", 0)]


def test_a_boundary_at_start_is_crossed_before_the_connection():
    seen = []
    with serving(reply(200)) as server:
        run(
            an_effect(a_tool(server), boundary=Boundary.AT_START),
            on_call=lambda verb: seen.append(server.connections),
        )
    assert seen[0] == 0


def test_an_attempt_that_lost_its_fence_at_the_boundary_sends_nothing():
    with serving(lambda talk: talk.read_all()) as server:
        with pytest.raises(FenceLost):
            run(an_effect(a_tool(server)), lose_fence_at="cross")
        server.wait_until(lambda: server.connections == 1)
    assert server.bytes_read == 0


@pytest.mark.parametrize("boundary", Boundary)
def test_a_refused_connection_proves_that_nothing_began(boundary):
    with serving(reply(200)) as server:
        pass
    outcome, context = run(an_effect(a_tool(server), boundary=boundary))
    assert became(outcome) == (Cause.CONNECT_FAILED, B)
    assert outcome.evidence["handed_over_bytes"] == 0
    assert context.crossed == (boundary is Boundary.AT_START)


def test_a_name_that_does_not_resolve_proves_that_nothing_began():
    def resolve(host, port):
        raise OSError("no such name")

    config = {"method": "POST", "url": "https://api.example.com/", "body": "arguments"}
    outcome, context = run(an_effect(config), HttpExecutor(network=Network(resolve=resolve)))
    assert became(outcome) == (Cause.CONNECT_FAILED, B)
    assert not context.crossed


def test_an_address_that_the_rules_refuse_proves_that_nothing_began():
    network = Network(resolve=lambda host, port: ["93.184.216.34", "10.0.0.1"])
    config = {"method": "POST", "url": "https://api.example.com/", "body": "arguments"}
    outcome, context = run(an_effect(config), HttpExecutor(network=network))
    assert became(outcome) == (Cause.PERMISSION, B)
    assert not context.crossed


def test_a_peer_that_is_gone_before_the_first_byte_was_taken_proves_that_nothing_began():
    def connect(address, port, seconds, options):
        connected = tcp_connect(address, port, seconds, options)
        connected.shutdown(1)
        return connected

    with serving(lambda talk: talk.wait_for_peer_to_leave()) as server:
        executor = HttpExecutor(network=Network(connect=connect))
        outcome, context = run(an_effect(a_tool(server)), executor)
    assert became(outcome) == (Cause.CONNECT_FAILED, B)
    assert context.crossed


def reset_after(count):
    def script(talk):
        talk.socket.recv(count)
        talk.reset()

    return script


@pytest.mark.parametrize("count", [1, 50, 65536])
def test_a_reset_after_the_first_byte_leaves_the_effect_unknown(count):
    with serving(reset_after(count)) as server:
        outcome, _ = run(an_effect(a_tool(server), arguments={"text": "a" * 500_000}))
    assert became(outcome) == (Cause.CONNECTION_LOST, U)
    assert outcome.evidence["handed_over_bytes"] > 0


@pytest.fixture
def shop():
    """An outside that applies an order before it misbehaves."""
    return []


def test_applied_and_then_dropped_is_unknown(shop):
    with serving(lambda talk: shop.append(talk.read_request())) as server:
        outcome, _ = run(an_effect(a_tool(server)))
    assert (len(shop), became(outcome)) == (1, (Cause.CONNECTION_LOST, U))


def test_applied_and_then_500_is_unknown(shop):
    def script(talk):
        shop.append(talk.read_request())
        talk.send(raw_reply(500, b"sorry"))

    with serving(script) as server:
        outcome, _ = run(an_effect(a_tool(server)))
    assert (len(shop), became(outcome)) == (1, (Cause.SERVER_ERROR, U))
    assert outcome.result.body == b"sorry"


def test_applied_and_then_silent_is_a_hang_and_unknown(shop):
    def script(talk):
        shop.append(talk.read_request())
        talk.wait_for_peer_to_leave()

    with serving(script) as server:
        outcome, _ = run(an_effect(a_tool(server)), remaining=0.3)
    assert (len(shop), became(outcome)) == (1, (Cause.HANG, U))


def ending_seen_by(server):
    """How the connection ended for the server: its exception, or None for an orderly end."""
    server.wait_until(lambda: server.finished == 1)
    return next(iter(server.endings), None)


def test_an_effect_that_is_answered_in_full_ends_in_order():
    def script(talk):
        talk.read_request()
        talk.send(raw_reply(200))
        talk.read_all()

    with serving(script) as server:
        run(an_effect(a_tool(server)))
        assert ending_seen_by(server) is None


def test_an_effect_that_is_given_up_ends_with_a_reset():
    def script(talk):
        talk.read_request()
        talk.read_all()

    with serving(script) as server:
        run(an_effect(a_tool(server)), remaining=0.2)
        assert isinstance(ending_seen_by(server), ConnectionResetError)


def test_no_time_left_at_all_proves_that_nothing_began():
    with serving(reply(200)) as server:
        outcome, context = run(an_effect(a_tool(server)), remaining=0.0)
        assert server.connections == 0
    assert became(outcome) == (Cause.HANG, B)
    assert not context.crossed


STATUSES = {
    400: (Cause.VALIDATION, R),
    401: (Cause.AUTH, R),
    403: (Cause.PERMISSION, R),
    404: (Cause.NOT_FOUND, R),
    408: (Cause.GATEWAY_TIMEOUT, U),
    409: (Cause.CONFLICT, R),
    429: (Cause.RATE_LIMITED, R),
    503: (Cause.SERVER_ERROR, U),
    504: (Cause.GATEWAY_TIMEOUT, U),
    202: (Cause.SERVER_ERROR, U),
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_is_what_the_table_says(status):
    with serving(reply(status)) as server:
        outcome, _ = run(an_effect(a_tool(server)))
    assert became(outcome) == STATUSES[status]


@pytest.mark.parametrize("later", [{"fence": 2}, {"crossed": True}])
def test_a_conflict_on_a_later_attempt_is_unknown(later):
    with serving(reply(409)) as server:
        outcome, _ = run(an_effect(a_tool(server), **later))
    assert became(outcome) == (Cause.CONFLICT, U)


def test_a_503_that_the_policy_calls_refused_is_a_refusal_with_its_wait():
    with serving(reply(503, retry_after="12")) as server:
        outcome, _ = run(an_effect(a_tool(server, refused_statuses=[503])))
    assert became(outcome) == (Cause.RATE_LIMITED, R)
    assert outcome.retry_after_s == 12.0


def test_a_retry_after_as_a_date_counts_from_the_date_of_the_answer():
    dates = {
        "date": "Wed, 21 Oct 2015 07:28:00 GMT",
        "retry_after": "Wed, 21 Oct 2015 07:28:40 GMT",
    }
    with serving(reply(429, **dates)) as server:
        outcome, _ = run(an_effect(a_tool(server)))
    assert outcome.retry_after_s == 40.0


def test_a_retry_after_that_cannot_be_read_is_ignored_and_noted():
    with serving(reply(429, retry_after="-3")) as server:
        outcome, _ = run(an_effect(a_tool(server)))
    assert outcome.retry_after_s is None
    assert outcome.evidence["retry_after_ignored"] == "-3"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_an_effect_is_never_sent_to_a_second_place(status):
    with serving(reply(200)) as elsewhere:
        with serving(reply(status, location=elsewhere.url)) as server:
            config = a_tool(server)
            config["allow"]["ports"].append(elsewhere.port)
            outcome, _ = run(an_effect(config))
        assert elsewhere.connections == 0
    assert became(outcome) == (Cause.SERVER_ERROR, U)


def test_a_redirect_that_the_tool_declares_as_its_success_is_one():
    with serving(reply(303, location="/orders/7")) as server:
        outcome, _ = run(an_effect(a_tool(server, success=[303])))
    assert outcome.cause is None


UNREADABLE = {
    "cut": lambda talk: (talk.read_request(), talk.send(raw_reply(200, b"half")[:-2])),
    "not the JSON it says": reply(200, b'{"id": ', content_type="application/json"),
    "deep": reply(200, b"[" * 500_000, content_type="application/problem+json"),
    "a bomb": gzipped(bytes(50 * 1024 * 1024)),
    "too long": reply(200, bytes(11 * 1024 * 1024)),
    "an unknown encoding": reply(200, b"\x1b", content_encoding="br"),
}


@pytest.mark.parametrize("script", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("make", [an_effect, a_read])
def test_a_success_that_cannot_be_read_is_known_and_keeps_what_came(script, make):
    with serving(script) as server:
        outcome, _ = run(make(a_tool(server)))
    assert became(outcome) == (Cause.RESULT_UNREADABLE, K)
    assert outcome.result.body


@pytest.mark.parametrize("body", [b"", b'"\xff"', b"plain"])
def test_a_body_that_does_not_claim_to_be_json_need_not_be(body):
    with serving(reply(200, body, content_type="text/plain")) as server:
        outcome, _ = run(an_effect(a_tool(server)))
    assert (outcome.cause, outcome.result.body) == (None, body)


def test_a_read_follows_a_redirect():
    with serving(reply(302, location="/there"), reply(200, b"here")) as server:
        outcome, _ = run(a_read(a_tool(server, method="GET", body="none")))
    assert outcome.result.body == b"here"


FILLED = {
    "slash": ("a/b", "/items/a%2Fb?q=a%2Fb"),
    "query": ("a?b&c=d", "/items/a%3Fb%26c%3Dd?q=a%3Fb%26c%3Dd"),
    "authority": ("@evil.test/", "/items/%40evil.test%2F?q=%40evil.test%2F"),
    "unicode": ("ü", "/items/%C3%BC?q=%C3%BC"),
    "number": (1.5, "/items/1.5?q=1.5"),
    "truth": (True, "/items/true?q=true"),
    "braces": ("{item}", "/items/%7Bitem%7D?q=%7Bitem%7D"),
    "percent": ("%2e%2e", "/items/%252e%252e?q=%252e%252e"),
}


@pytest.mark.parametrize(("item", "path"), FILLED.values(), ids=FILLED)
def test_an_argument_stays_one_piece_of_the_url(item, path):
    config = {"method": "GET", "body": "none", "query": {"q": "{item}"}}
    with serving(reply(200)) as server:
        run(a_read(a_tool(server, "/items/{item}", **config), arguments={"item": item}))
        assert server.requests[0].path == path


UNFIT = ["", "..", ".", "a\r\nb", "a\0b", None, ["a"], {"a": 1}, "\x7f", "a" * 9000]


@pytest.mark.parametrize("item", UNFIT)
def test_an_argument_that_does_not_fit_into_the_path_sends_nothing(item):
    with serving(reply(200)) as server:
        outcome, context = run(
            an_effect(a_tool(server, "/items/{item}/end"), arguments={"item": item})
        )
        assert server.connections == 0
    assert became(outcome) == (Cause.VALIDATION, B)
    assert not context.crossed


def test_an_argument_with_a_line_break_never_becomes_a_header():
    config = {"headers": {"If-Match": "{item}"}}
    with serving(reply(200)) as server:
        outcome, context = run(
            an_effect(a_tool(server, **config), arguments={"item": "a\r\nX-Evil: 1"})
        )
        assert server.connections == 0
    assert became(outcome) == (Cause.VALIDATION, B)
    assert not context.crossed


def test_a_missing_argument_is_named():
    with serving(reply(200)) as server:
        outcome, _ = run(an_effect(a_tool(server, "/items/{size}")))
    assert "'size' is missing" in outcome.message


def test_an_argument_cannot_pass_itself_off_as_the_marker():
    with serving(reply(200)) as server:
        assignment = an_effect(
            a_tool(server, body={"template": {"ref": "{marker}"}}), arguments={"marker": "forged"}
        )
        run(assignment)
        assert server.requests[0].json == {"ref": assignment.marker}


def test_a_template_body_keeps_types_and_leaves_out_what_is_absent():
    template = {
        "n": "{count}",
        "text": "{count} of {item}",
        "list": ["{item}", "{none}"],
        "gone": "{none}",
        "{{": "}}",
    }
    with serving(reply(200)) as server:
        run(
            an_effect(
                a_tool(server, body={"template": template}), arguments={"count": 2, "item": "tea"}
            )
        )
        assert server.requests[0].json == {
            "n": 2,
            "text": "2 of tea",
            "list": ["tea"],
            "{{": "}",
        }


def test_a_form_body_is_encoded():
    with serving(reply(200)) as server:
        run(an_effect(a_tool(server, body={"form": {"a": "{item}", "b": "1&2"}})))
        (got,) = server.requests
    assert got.body == b"a=tea&b=1%262"
    assert got.headers["content-type"] == "application/x-www-form-urlencoded"


SECRET = {"Authorization": {"$secret": "shop/key", "prefix": "Bearer "}}
CANARY = "canary-0123456789"


def test_a_secret_goes_out_and_never_comes_back():
    def echo(talk):
        got = talk.read_request()
        talk.send(raw_reply(200, json.dumps(got.headers).encode()))

    with serving(echo) as server:
        executor = HttpExecutor(secrets={"shop/key": CANARY})
        outcome, _ = run(an_effect(a_tool(server, headers=SECRET)), executor)
        assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert CANARY not in repr(outcome)
    assert b"Bearer [secret shop/key]" in outcome.result.body


@pytest.mark.parametrize("status", [401, 500])
def test_an_error_names_neither_secret_nor_argument(status, caplog):
    caplog.set_level("DEBUG")
    with serving(reply(status)) as server:
        executor = HttpExecutor(secrets={"shop/key": CANARY})
        config = a_tool(
            server, "/items/{item}", headers=SECRET, query={"k": {"$secret": "shop/key"}}
        )
        outcome, _ = run(an_effect(config, arguments={"item": "private-item"}), executor)
    shown = repr(outcome) + caplog.text
    assert CANARY not in shown
    assert "private-item" not in shown


def test_a_secret_that_is_not_set_sends_nothing_and_says_how_to_set_it():
    with serving(reply(200)) as server:
        outcome, context = run(an_effect(a_tool(server, headers=SECRET)))
        assert server.connections == 0
    assert became(outcome) == (Cause.AUTH, B)
    assert "CLEARHOUSE_SECRET_SHOP_KEY" in outcome.message
    assert not context.crossed


def test_a_secret_with_a_line_break_sends_nothing_and_is_not_shown():
    with serving(reply(200)) as server:
        executor = HttpExecutor(secrets={"shop/key": CANARY + "\n"})
        outcome, context = run(an_effect(a_tool(server, headers=SECRET)), executor)
        assert server.connections == 0
    assert became(outcome) == (Cause.VALIDATION, B)
    assert CANARY not in repr(outcome)
    assert not context.crossed


def test_a_configuration_that_cannot_be_used_sends_nothing():
    outcome, context = run(an_effect({"method": "POST", "url": "https://{item}.example.com/"}))
    assert became(outcome) == (Cause.INTERNAL, B)
    assert "placeholder may not stand" in outcome.message
    assert not context.crossed


@pytest.mark.parametrize(
    "recovery_class", [each for each in RecoveryClass if each is not RecoveryClass.READ_ONLY]
)
def test_every_class_but_a_read_crosses(recovery_class):
    with serving(reply(200)) as server:
        _, context = run(an_effect(a_tool(server), recovery_class=recovery_class))
    assert context.crossed


def test_many_reads_at_a_time_do_not_mix():
    def echo(talk):
        talk.send(raw_reply(200, talk.read_request().path.encode()))

    with serving(echo) as server, ThreadPoolExecutor(16) as pool:
        start = threading.Barrier(16, timeout=5)
        tool = a_tool(server, "/items/{item}", method="GET", body="none")

        def one(number):
            start.wait()
            outcome, _ = run(a_read(tool, call_id=uuid4(), arguments={"item": number}))
            return outcome.result.body

        bodies = list(pool.map(one, range(64)))
    assert bodies == [b"/items/%d" % number for number in range(64)]
