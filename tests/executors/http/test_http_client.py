"""One request, one connection, one answer: what is sent, what is refused, what is bounded."""

import socket
import threading
import time

import pytest

from executors.http.client import Request, exchange, follow
from executors.http.targets import read_url
from executors.http.wire import Network, Traffic, Unanswered, tcp_connect
from executors.network import Fault
from tests.executors.http.loopback import (
    a_request,
    gzipped,
    raw_reply,
    reply,
    rules_for,
    serving,
)

PUBLIC = "93.184.216.34"


def send(server, request=None, seconds=3.0, network=None, before=lambda: None, **changes):
    return exchange(
        request or a_request(server, **changes),
        rules=rules_for(server),
        network=network or Network(),
        traffic=Traffic.within(seconds, before),
    )


def fault_of(act, *arguments, **settings):
    with pytest.raises(Unanswered) as failure:
        act(*arguments, **settings)
    return failure.value.fault


def test_a_request_arrives_as_it_was_given():
    with serving(reply(200, {"ok": True}, x_note="a")) as server:
        answer = send(
            server, method="PUT", path="/a%20b?c=1", headers=(("X-Mine", "1"),), body=b"{}"
        )
        (got,) = server.requests
    assert (got.method, got.path, got.body) == ("PUT", "/a%20b?c=1", b"{}")
    assert got.headers["host"] == f"127.0.0.1:{server.port}"
    assert got.headers["x-mine"] == "1"
    assert got.headers["content-length"] == "2"
    assert (answer.status, answer.body, answer.media_type) == (
        200,
        b'{"ok": true}',
        "application/json",
    )


def test_every_request_has_a_connection_of_its_own():
    with serving(reply(200)) as server:
        for _ in range(3):
            send(server)
        assert server.connections == 3


def test_the_checked_address_is_connected_to_and_the_host_stays_as_it_was():
    asked, dialled = [], []

    def resolve(host, port):
        asked.append(host)
        return [PUBLIC] if len(asked) == 1 else ["127.0.0.1"]

    with serving(reply(200)) as server:

        def connect(address, port, seconds, options):
            dialled.append(address)
            return tcp_connect("127.0.0.1", server.port, seconds, options)

        target = read_url("http://rebound.example.com/")
        exchange(
            a_request(server, target=target),
            rules=rules_for(hosts=("rebound.example.com",)),
            network=Network(resolve=resolve, connect=connect),
            traffic=Traffic.within(3.0),
        )
        assert server.requests[0].headers["host"] == "rebound.example.com"
    assert (asked, dialled) == (["rebound.example.com"], [PUBLIC])


def test_the_second_address_is_tried_where_the_first_refuses():
    with serving(reply(200), address="127.0.0.3") as server:
        target = read_url(f"http://two.test:{server.port}/")
        answer = exchange(
            a_request(server, target=target),
            rules=rules_for(server, private_hosts=("two.test",)),
            network=Network(resolve=lambda host, port: ["127.0.0.2", "127.0.0.3"]),
            traffic=Traffic.within(3.0),
        )
    assert answer.status == 200


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"])
def test_a_proxy_in_the_environment_is_not_used(monkeypatch, name):
    with serving(reply(200)) as server, serving(reply(500)) as proxy:
        monkeypatch.setenv(name, proxy.url)
        assert send(server).status == 200
        assert proxy.connections == 0


def test_a_netrc_file_is_not_read(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login someone password hidden-word\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with serving(reply(200)) as server:
        send(server)
        assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "é", "a\x7f"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_header_with_a_break_in_it_is_refused_before_any_connection(value, place):
    pair = ("X-Mine", value) if place else ("X-" + value, "1")
    with serving(reply(200)) as server:
        assert fault_of(send, server, headers=(pair,)) is Fault.UNFIT_REQUEST
        assert server.connections == 0


@pytest.mark.parametrize("path", ["/a\r\nX-Evil:1", "/a\0", "/a%0d%0aX", "/%00"])
def test_a_path_with_a_break_in_it_is_refused(path):
    with pytest.raises(ValueError, match="URL"):
        read_url("http://127.0.0.1:8000" + path)


def test_the_first_byte_is_announced_once_after_the_connection_stands():
    seen = []
    with serving(reply(200)) as server:

        def before():
            server.wait_until(lambda: server.connections == 1)
            seen.append(server.bytes_read)

        send(server, method="POST", body=b"x" * 100_000, before=before)
        assert seen == [0]
        assert server.bytes_read > 100_000


def test_a_refused_connection_is_never_announced():
    with serving(reply(200)) as server:
        pass
    announced = []
    fault = fault_of(send, server, before=lambda: announced.append(1))
    assert fault is Fault.CONNECTION_REFUSED
    assert announced == []


def test_what_the_announcement_raises_passes_through_and_nothing_is_sent():
    class Lost(Exception):
        pass

    def before():
        raise Lost

    with serving(lambda talk: talk.read_all()) as server:
        with pytest.raises(Lost):
            send(server, before=before)
        server.wait_until(lambda: server.connections == 1)
    assert server.bytes_read == 0


def test_a_name_that_is_slow_to_resolve_ends_with_the_time_to_connect():
    release = threading.Event()

    def resolve(host, port):
        release.wait(5)
        return [PUBLIC]

    begun = time.monotonic()
    fault = fault_of(
        exchange,
        Request(method="GET", target=read_url("https://slow.example.com/")),
        rules=rules_for(hosts=("slow.example.com",)),
        network=Network(resolve=resolve),
        traffic=Traffic.within(0.2),
    )
    release.set()
    assert fault is Fault.NAME_NOT_RESOLVED
    assert time.monotonic() - begun < 1.5


def test_a_server_that_never_answers_is_left_when_the_time_is_spent():
    with serving(lambda talk: talk.wait_for_peer_to_leave()) as server:
        begun = time.monotonic()
        assert fault_of(send, server, seconds=0.3) is Fault.OUT_OF_TIME
        assert 0.25 < time.monotonic() - begun < 1.5


def test_a_server_that_stops_reading_is_left_when_the_time_is_spent():
    stay = threading.Event()
    with serving(lambda talk: stay.wait(5)) as server:
        fault = fault_of(send, server, seconds=0.3, method="POST", body=bytes(20_000_000))
        stay.set()
        assert fault is Fault.OUT_OF_TIME


def drip(talk):
    """A byte every 20 ms: each wait is short, the whole is endless."""
    talk.read_request()
    for byte in b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 10_000:
        talk.send(bytes([byte]))
        time.sleep(0.02)


def test_a_slow_drip_of_headers_ends_when_the_time_is_spent():
    with serving(drip) as server:
        begun = time.monotonic()
        assert fault_of(send, server, seconds=0.4) is Fault.OUT_OF_TIME
        assert time.monotonic() - begun < 1.5


def drip_body(talk):
    talk.read_request()
    talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    for _ in range(10_000):
        talk.send(b"a")
        time.sleep(0.02)


def test_a_slow_drip_of_a_body_keeps_what_came_and_says_that_it_is_cut():
    with serving(drip_body) as server:
        answer = send(server, seconds=0.4)
    assert answer.status == 200
    assert 0 < len(answer.body) < 10_000
    assert set(answer.body) == {ord("a")}
    assert "time" in answer.cut


CUT_SHORT = {
    "a length that lies": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
    "a chunk that lies": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf",
    "no last chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
}


@pytest.mark.parametrize("sent", CUT_SHORT.values(), ids=CUT_SHORT)
def test_a_body_that_ends_early_is_cut(sent):
    def script(talk):
        talk.read_request()
        talk.send(sent)

    with serving(script) as server:
        answer = send(server)
    assert (answer.body, answer.cut) == (
        b"half",
        "The connection was closed before the end of the answer.",
    )


def test_a_body_that_ends_with_a_reset_is_cut():
    heard = threading.Event()

    class Watched(socket.socket):
        def recv(self, *arguments):
            received = super().recv(*arguments)
            heard.set()
            return received

    def connect(address, port, seconds, options):
        return Watched(fileno=tcp_connect(address, port, seconds, options).detach())

    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        assert heard.wait(5)
        talk.reset()

    with serving(script) as server:
        answer = send(server, network=Network(connect=connect))
    assert answer.body == b"half"
    assert "broke" in answer.cut


def test_a_body_without_a_length_is_whole_at_an_orderly_end():
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")

    with serving(script) as server:
        answer = send(server)
    assert (answer.body, answer.cut) == (b"all of it", "")


NOT_HTTP = {
    "another protocol": b"220 mail.example.com ESMTP\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a bad header": b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
    "headers without end": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000,
}


@pytest.mark.parametrize("sent", NOT_HTTP.values(), ids=NOT_HTTP)
def test_an_answer_that_is_not_http_is_said_to_be_malformed(sent):
    def script(talk):
        talk.read_request()
        talk.send(sent)
        talk.wait_for_peer_to_leave()

    with serving(script) as server:
        assert fault_of(send, server) is Fault.MALFORMED_ANSWER


def test_a_connection_closed_without_an_answer_is_said_to_be_closed():
    with serving(lambda talk: talk.read_request()) as server:
        assert fault_of(send, server) is Fault.CONNECTION_CLOSED


def test_a_connection_reset_after_the_request_is_said_to_be_reset():
    def script(talk):
        talk.read_request()
        talk.reset()

    with serving(script) as server:
        assert fault_of(send, server) is Fault.CONNECTION_RESET


def test_a_refusal_sent_before_the_request_was_read_is_still_heard():
    def script(talk):
        talk.send(raw_reply(413, b"too long"))
        talk.wait_for_peer_to_leave()

    with serving(script) as server:
        assert send(server, method="POST", body=bytes(100_000)).status == 413


def test_eleven_mebibytes_are_cut_at_ten():
    with serving(reply(200, bytes(11 * 1024 * 1024))) as server:
        answer = send(server)
    assert len(answer.body) == 10 * 1024 * 1024
    assert "longer" in answer.cut


def test_a_gzip_bomb_is_cut_at_a_hundred_times_its_size():
    with serving(gzipped(bytes(100 * 1024 * 1024))) as server:
        answer = send(server)
    assert "100 times" in answer.cut
    assert len(answer.body) <= 10 * 1024 * 1024


def read(server, *others, seconds=3.0, network=None, **changes):
    return follow(
        a_request(server, **changes),
        rules=rules_for(server, *others),
        network=network or Network(),
        traffic=Traffic.within(seconds),
    )


def test_a_read_follows_three_redirects():
    hops = [reply(302, location=f"/hop{number}") for number in range(3)]
    with serving(*hops, reply(200, b"here")) as server:
        assert read(server).body == b"here"
        assert [got.path for got in server.requests] == ["/", "/hop0", "/hop1", "/hop2"]


def test_a_read_does_not_follow_a_fourth():
    with serving(reply(302, location="/again")) as server:
        assert fault_of(read, server) is Fault.TOO_MANY_REDIRECTS
        assert server.connections == 4


def test_a_redirect_to_a_private_address_is_not_followed():
    with serving(reply(200), address="127.0.0.5") as canary:
        with serving(reply(302, location=canary.url)) as server:
            fault = fault_of(
                follow,
                a_request(server),
                rules=rules_for(server, ports=(server.port, canary.port), hosts=("127.0.0.5",)),
                network=Network(),
                traffic=Traffic.within(3.0),
            )
        assert fault is Fault.NOT_ALLOWED
        assert canary.connections == 0


def test_a_redirect_resolves_and_checks_the_name_anew():
    answers = iter([[PUBLIC], ["127.0.0.1"]])
    with serving(reply(302, location="/next")) as server:
        fault = fault_of(
            follow,
            a_request(server, target=read_url("http://rebound.example.com/")),
            rules=rules_for(hosts=("rebound.example.com",)),
            network=Network(
                resolve=lambda host, port: next(answers),
                connect=lambda address, port, seconds, options: tcp_connect(
                    "127.0.0.1", server.port, seconds, options
                ),
            ),
            traffic=Traffic.within(3.0),
        )
        assert fault is Fault.NOT_ALLOWED
        assert server.connections == 1


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://0x7f.1/", "http://a@b/"])
def test_a_redirect_that_cannot_be_read_ends_the_read(location):
    with serving(reply(302, location=location)) as server:
        assert fault_of(read, server) is Fault.NOT_ALLOWED


def test_credentials_do_not_go_along_to_another_host():
    sent = (("Authorization", "Bearer abc"), ("X-Api-Key", "def"), ("Accept", "text/plain"))
    with serving(reply(200), address="127.0.0.6") as other:
        with serving(reply(302, location=other.url)) as server:
            read(server, other, headers=sent)
        (got,) = other.requests
    assert got.headers["accept"] == "text/plain"
    assert not {"authorization", "x-api-key"} & set(got.headers)


def test_credentials_go_along_on_the_same_host():
    with serving(reply(302, location="/b"), reply(200)) as server:
        read(server, headers=(("Authorization", "Bearer abc"),))
        assert server.requests[1].headers["authorization"] == "Bearer abc"


@pytest.mark.parametrize(
    ("status", "method", "body"), [(303, "GET", b""), (302, "GET", b""), (307, "POST", b"{}")]
)
def test_a_redirected_query_by_post_keeps_its_method_only_where_it_must(status, method, body):
    with serving(reply(status, location="/b"), reply(200)) as server:
        read(server, method="POST", body=b"{}")
        assert (server.requests[1].method, server.requests[1].body) == (method, body)


def test_a_body_is_never_carried_to_another_host():
    with serving(reply(200), address="127.0.0.6") as other:
        with serving(reply(307, location=other.url)) as server:
            fault = fault_of(read, server, other, method="POST", body=b"{}")
        assert fault is Fault.NOT_ALLOWED
        assert other.connections == 0
