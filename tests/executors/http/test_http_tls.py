"""TLS: the name is checked, a failure is proof of not begun, a ragged end is a cut."""

import os
import socket
from functools import partial

import pytest

from executors.http.client import exchange, follow
from executors.http.targets import read_url
from executors.http.wire import Network, Traffic, Unanswered, public_tls
from executors.network import Fault
from tests.executors.http.certificates import (
    make_certificate,
    needs_openssl,
    server_side,
    trusting,
)
from tests.executors.http.loopback import (
    a_request,
    raw_reply,
    reply,
    rules_for,
    serving,
)

NAME = "api.clearhouse.test"
pytestmark = needs_openssl


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"), NAME)


@pytest.fixture
def names():
    return []


@pytest.fixture
def tls_server(certificate, names):
    context = server_side(certificate)
    context.sni_callback = lambda connected, name, _: names.append(name)
    return partial(serving, wrap=partial(context.wrap_socket, server_side=True))


@pytest.fixture
def trusted(certificate):
    return partial(trusting, certificate)


def send(server, tls, name=NAME, before=lambda: None, **changes):
    return exchange(
        a_request(server, target=read_url(f"https://{name}:{server.port}/"), **changes),
        rules=rules_for(server, private_hosts=(name,)),
        network=Network(resolve=lambda host, port: ["127.0.0.1"], tls=tls),
        traffic=Traffic.within(3.0, before),
    )


def test_host_and_sni_stay_the_name_while_the_address_is_the_checked_one(
    tls_server, trusted, names
):
    with tls_server(reply(200, b"ok")) as server:
        assert send(server, trusted).body == b"ok"
        assert server.requests[0].headers["host"] == f"{NAME}:{server.port}"
    assert names == [NAME]


def speaks_plainly(talk):
    talk.send(raw_reply(400))
    talk.wait_for_peer_to_leave()


@pytest.mark.parametrize("case", ["unknown authority", "another name", "no TLS at all"])
def test_a_tls_failure_is_never_announced_and_sends_nothing(tls_server, trusted, case):
    announced = []
    serve = serving if case == "no TLS at all" else tls_server
    tls = public_tls if case == "unknown authority" else trusted
    name = "other.clearhouse.test" if case == "another name" else NAME
    with serve(reply(200) if serve is tls_server else speaks_plainly) as server:
        with pytest.raises(Unanswered) as failure:
            send(server, tls, name, before=lambda: announced.append(1))
        assert failure.value.fault is Fault.TLS_FAILED
        assert (announced, server.requests) == ([], [])


def test_a_handshake_that_never_ends_is_left_after_the_time_to_connect(trusted):
    with serving(lambda talk: talk.wait_for_peer_to_leave()) as server:
        with pytest.raises(Unanswered) as failure:
            exchange(
                a_request(server, target=read_url(f"https://{NAME}:{server.port}/")),
                rules=rules_for(server, private_hosts=(NAME,)),
                network=Network(resolve=lambda host, port: ["127.0.0.1"], tls=trusted),
                traffic=Traffic.within(0.3),
            )
    assert failure.value.fault is Fault.CONNECT_TIMEOUT


def test_the_first_byte_is_announced_after_the_handshake(tls_server, trusted, names):
    seen = []
    with tls_server(reply(200)) as server:
        send(server, trusted, before=lambda: seen.append((list(names), server.bytes_read)))
    assert seen == [([NAME], 0)]


def close_it(talk):
    os.close(talk.socket.detach())


def end_the_stream_below_tls(talk):
    talk.socket.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("end", [close_it, end_the_stream_below_tls])
def test_a_ragged_end_is_not_taken_for_the_end_of_the_answer(tls_server, trusted, end):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        end(talk)

    with tls_server(script) as server:
        answer = send(server, trusted)
    assert answer.body == b"half"
    assert "broke" in answer.cut


def test_certificates_named_by_the_environment_are_not_trusted(
    monkeypatch, certificate, tls_server
):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    public_tls.cache_clear()
    with tls_server(reply(200)) as server, pytest.raises(Unanswered, match="TLS"):
        send(server, public_tls)


def test_a_redirect_from_https_to_http_is_not_followed(tls_server, trusted):
    with serving(reply(200)) as plain, tls_server(reply(302, location=plain.url)) as server:
        with pytest.raises(Unanswered, match="from https to http") as failure:
            follow(
                a_request(server, target=read_url(f"https://{NAME}:{server.port}/")),
                rules=rules_for(server, plain, private_hosts=(NAME, "127.0.0.1")),
                network=Network(resolve=lambda host, port: ["127.0.0.1"], tls=trusted),
                traffic=Traffic.within(3.0),
            )
        assert plain.connections == 0
    assert failure.value.fault is Fault.NOT_ALLOWED
