"""The outbound part of the bad-input corpus, sent by the real client to a server that watches."""

from functools import partial

import pytest

from executors.http.addresses import OutboundRules
from executors.http.client import Request, follow
from executors.http.targets import UnfitUrl, read_url
from executors.http.wire import Network, Traffic, Unanswered, tcp_connect
from executors.network import Fault
from tests.corpus_loader import load
from tests.executors.http.certificates import (
    make_certificate,
    needs_openssl,
    server_side,
    trusting,
)
from tests.executors.http.loopback import reply, serving

pytestmark = needs_openssl
NAME = "tool.example"
CHECKED = "93.184.215.14"
ENTRIES = load("outbound_urls", channel="outbound")
PLAIN_HTTP_TOO = {"ip_literal", "not_public"}
REFUSALS = {Fault.NOT_ALLOWED, Fault.NAME_NOT_RESOLVED, Fault.TOO_MANY_REDIRECTS}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"), NAME)


def entries(outcome):
    chosen = [entry for entry in ENTRIES if entry.expect.outcome == outcome]
    return pytest.mark.parametrize("entry", chosen, ids=[entry.id for entry in chosen])


class Outside:
    """A resolver that answers as the entry says, and a network whose dialling is written down."""

    def __init__(self, entry, certificate):
        self.entry = entry
        self.certificate = certificate
        self.dialled = []
        self.looks = [list(look) for look in entry.more.get("resolves", [])]

    def get(self, server):
        schemes = ("https",)
        if self.entry.expect.more.get("reason") in PLAIN_HTTP_TOO:
            schemes = ("http", "https")
        return follow(
            Request(method="GET", target=read_url(self.entry.text())),
            rules=OutboundRules(hosts=(NAME,), schemes=schemes),
            network=Network(
                resolve=self._resolve,
                connect=partial(self._connect, server.port),
                tls=partial(trusting, self.certificate),
            ),
            traffic=Traffic.within(5.0),
        )

    def serving(self):
        hops = [reply(302, location=place) for place in self.entry.more.get("redirects", [])]
        wrap = partial(server_side(self.certificate).wrap_socket, server_side=True)
        return serving(*hops, reply(200, b"reached"), wrap=wrap)

    def _resolve(self, host, port):
        return self.looks.pop(0) if len(self.looks) > 1 else (self.looks or [[]])[0]

    def _connect(self, port, address, _port, seconds, options):
        self.dialled.append(address)
        return tcp_connect("127.0.0.1", port, seconds, options)


@entries("refused")
def test_what_the_corpus_refuses_is_refused_and_never_reached(entry, certificate):
    outside = Outside(entry, certificate)
    with outside.serving() as server:
        with pytest.raises((Unanswered, UnfitUrl)) as refused:
            outside.get(server)
        served = [got.path for got in server.requests]
    assert getattr(refused.value, "fault", Fault.NOT_ALLOWED) in REFUSALS
    assert set(outside.dialled) <= {CHECKED}
    assert len(outside.dialled) == len(served)
    if entry.expect.more.get("reason") != "redirect":
        assert outside.dialled == []


@entries("allowed")
def test_what_the_corpus_allows_is_reached_at_the_checked_address(entry, certificate):
    outside = Outside(entry, certificate)
    with outside.serving() as server:
        assert outside.get(server).body == b"reached"
    assert set(outside.dialled) == {entry.more.get("connects_to", CHECKED)}


def test_the_corpus_has_no_third_outcome_here():
    assert {entry.expect.outcome for entry in ENTRIES} == {"refused", "allowed"}
