"""The outbound rules: what no tool may reach, and what it may."""

import pytest

from executors.http.addresses import (
    NotAllowed,
    NotResolved,
    OutboundRules,
    allowed,
    why_refused,
)
from executors.http.client import Request, exchange
from executors.http.targets import UnfitUrl, read_redirect, read_url
from executors.http.wire import Network, Traffic, Unanswered
from executors.network import Fault
from tests.executors.http.loopback import reply, serving

PUBLIC = "93.184.216.34"
RULES = OutboundRules(hosts=("api.example.com", "*.files.example.com"))
ANY_LITERAL = [
    "127.0.0.1",
    "127.1.2.3",
    "0.0.0.0",  # noqa: S104  (refused, not bound)
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
]
ANY_LITERAL_6 = [
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:8.8.8.8",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
UNREADABLE = [
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.0.01/",
    "http://127.0.0.1.5/",
    "http://1/",
    "http://api.example.com@127.0.0.1/",
    "http://user:word@api.example.com/",
    "http://@api.example.com/",
    "http://api.example.com\\@127.0.0.1/",
    "http://api.example.com#@127.0.0.1/",
    "http://127.0.0.1%2f@api.example.com/",
    "http://api.example.com:0/",
    "http://api.example.com:65536/",
    "http://api.example.com:80:80/",
    "http://[::1",
    "http://::1/",
    "http://[::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[127.0.0.1]/",
    "http:///etc/passwd",
    "http:api.example.com",
    "//api.example.com/",
    "/relative",
    "",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_x",
    "ftp://api.example.com/",
    "unix:///run/postgresql",
    "http://api.example.com/a b",
    "http://api.example.com/a\r\nHost: x",
    "http://api.example.com/%0d%0aHost:x",
    "http://api.example.com/%00",
    "http://api.example.com/?q=%00",
    "http://api.example.com/../admin",
    "http://api.example.com/x/%2e%2E/admin",
    "http://api.example.com/./x",
    "http://api.example.com/x#y",
    "http://аpi.example.com/",
    "http://api。example.com/",
    "http://①②⑦.⓪.⓪.①/",
    "http://api..example.com/",
    "http://-api.example.com/",
    "http://" + "a" * 64 + ".example.com/",
    "http://" + "a." * 130 + "com/",
    "http://api.example.com/" + "a" * 9000,
]
NOT_LISTED = [
    "https://evil.example.com/",
    "https://api.example.com.evil.test/",
    "https://files.example.com/",
    "https://xfiles.example.com/",
    "https://localhost/",
    "https://localhost./",
    "https://LOCALHOST/",
    "https://metadata.google.internal/",
    "https://93.184.216.34/",
    "https://[2606:4700::1111]/",
    "http://api.example.com/",
    "https://api.example.com:8443/",
    "https://api.example.com:22/",
]
READABLE = {
    "https://api.example.com": ("api.example.com", 443, "/"),
    "HTTPS://API.Example.COM./x": ("api.example.com", 443, "/x"),
    "https://api.example.com:443/x?y=%20": ("api.example.com", 443, "/x?y=%20"),
    "https://api.example.com?q=1": ("api.example.com", 443, "/?q=1"),
    "https://xn--bcher-kva.example/": ("xn--bcher-kva.example", 443, "/"),
    "http://[2606:4700:0::1111]:8080/": ("2606:4700::1111", 8080, "/"),
    "https://_dmarc.example.com/..x": ("_dmarc.example.com", 443, "/..x"),
}


def public(host, port):
    return [PUBLIC]


@pytest.mark.parametrize("address", ANY_LITERAL + ANY_LITERAL_6)
def test_an_address_that_is_not_public_is_refused_with_a_reason(address):
    assert why_refused(address)


@pytest.mark.parametrize("address", ANY_LITERAL + ANY_LITERAL_6)
def test_a_name_with_one_such_address_is_refused_whatever_else_it_has(address):
    with pytest.raises(NotAllowed, match="Nothing was"):
        allowed("https://api.example.com/", RULES, lambda host, port: [PUBLIC, address])


@pytest.mark.parametrize("address", ANY_LITERAL)
def test_an_address_in_the_url_is_refused_even_when_the_list_names_it(address):
    rules = OutboundRules(hosts=(address,), schemes=("http",))
    with pytest.raises(NotAllowed):
        allowed(f"http://{address}/", rules, public)


@pytest.mark.parametrize("address", ANY_LITERAL_6)
def test_an_ipv6_address_in_the_url_is_refused_even_when_the_list_names_it(address):
    host = read_url(f"http://[{address}]/").host
    with pytest.raises(NotAllowed):
        allowed(f"http://[{address}]/", OutboundRules(hosts=(host,), schemes=("http",)), public)


@pytest.mark.parametrize("url", UNREADABLE)
def test_a_url_that_can_be_read_in_two_ways_is_not_read_at_all(url):
    with pytest.raises(UnfitUrl):
        read_url(url)


@pytest.mark.parametrize("url", UNREADABLE)
def test_no_rule_allows_a_url_that_cannot_be_read(url):
    rules = OutboundRules(hosts=("*.com", "127.0.0.1", "127.1", "1"), schemes=("http", "https"))
    with pytest.raises(NotAllowed):
        allowed(url, rules, public)


@pytest.mark.parametrize("url", NOT_LISTED)
def test_what_the_rules_do_not_list_is_refused(url):
    with pytest.raises(NotAllowed):
        allowed(url, RULES, public)


@pytest.mark.parametrize("url", ["https://api.example.com/", "https://a.b.files.example.com/x"])
def test_a_listed_host_gives_the_addresses_that_were_checked(url):
    assert allowed(url, RULES, lambda host, port: [PUBLIC, "2606:4700::1111"]) == [
        PUBLIC,
        "2606:4700::1111",
    ]


@pytest.mark.parametrize(("url", "parts"), READABLE.items())
def test_a_plain_url_is_read_into_its_parts(url, parts):
    target = read_url(url)
    assert (target.host, target.port, target.path) == parts


def test_a_listed_public_address_is_reached_without_a_resolver():
    rules = OutboundRules(hosts=(PUBLIC,))
    assert allowed(f"https://{PUBLIC}/", rules, lambda host, port: []) == [PUBLIC]


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "192.168.0.9", "100.64.0.1", "::1"])
def test_a_private_host_may_be_private_but_only_if_it_is_listed_as_such(address):
    rules = OutboundRules(private_hosts=("db.internal",))
    assert allowed("https://db.internal/", rules, lambda host, port: [address]) == [address]
    with pytest.raises(NotAllowed):
        allowed(
            "https://db.internal/",
            OutboundRules(hosts=("db.internal",)),
            lambda host, port: [address],
        )


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "::ffff:10.0.0.1"]
)
def test_a_private_host_never_reaches_metadata_or_an_address_in_disguise(address):
    with pytest.raises(NotAllowed):
        allowed(
            "https://db.internal/",
            OutboundRules(private_hosts=("db.internal",)),
            lambda host, port: [address],
        )


@pytest.mark.parametrize("name", ["metadata.google.internal", "instance-data"])
def test_a_metadata_name_is_refused_even_when_it_is_listed_and_looks_public(name):
    with pytest.raises(NotAllowed, match="metadata"):
        allowed(f"https://{name}/", OutboundRules(private_hosts=(name,)), public)


@pytest.mark.parametrize("answer", ["not-an-address", "fe80::1%eth0", "127.1"])
def test_a_resolver_that_answers_nonsense_is_not_believed(answer):
    with pytest.raises(NotAllowed):
        allowed("https://api.example.com/", RULES, lambda host, port: [answer])


def test_a_name_without_an_address_is_not_resolved():
    def fails(host, port):
        raise OSError("no such name")

    for resolve in (fails, lambda host, port: []):
        with pytest.raises(NotResolved):
            allowed("https://api.example.com/", RULES, resolve)


@pytest.mark.parametrize(
    ("location", "onward"),
    {
        "/next": "https://api.example.com/next",
        "next": "https://api.example.com/a/next",
        "../up": "https://api.example.com/up",
        "//cdn.example.com/x": "https://cdn.example.com/x",
        "https://other.example.com/#part": "https://other.example.com/",
    }.items(),
)
def test_a_redirect_is_read_against_the_request_it_answers(location, onward):
    target = read_redirect(read_url("https://api.example.com/a/b"), location)
    assert target.origin + target.path == onward


@pytest.mark.parametrize(
    "location", ["javascript:x", "http://0x7f.1/", "https://a@b/", "http://[/"]
)
def test_a_redirect_that_cannot_be_read_is_not_followed(location):
    with pytest.raises(UnfitUrl, match="redirect"):
        read_redirect(read_url("https://api.example.com/"), location)


def disguises(port):
    literals = [f"[{address}]" for address in ANY_LITERAL_6] + ANY_LITERAL
    names = ["localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "a@127.0.0.1"]
    return [f"http://{host}:{port}/" for host in [*literals, *names, "rebound.example.com"]]


def test_a_canary_on_loopback_sees_nothing_of_any_of_them():
    with serving(reply(200)) as canary:
        rules = OutboundRules(
            hosts=("*.example.com", "localhost", *ANY_LITERAL, *ANY_LITERAL_6),
            schemes=("http",),
            ports=(canary.port,),
        )
        refused = [_refusal(url, rules) for url in disguises(canary.port)]
        assert len(refused) >= 48
        assert set(refused) == {Fault.NOT_ALLOWED}
        assert canary.connections == 0


def _refusal(url, rules):
    network = Network(resolve=lambda host, port: ["127.0.0.1"])
    try:
        target = read_url(url)
    except UnfitUrl:
        return Fault.NOT_ALLOWED
    with pytest.raises(Unanswered) as refused:
        exchange(
            Request(method="GET", target=target),
            rules=rules,
            network=network,
            traffic=Traffic.within(2.0),
        )
    return refused.value.fault
