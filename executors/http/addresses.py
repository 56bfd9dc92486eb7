"""The outbound rules: which addresses a tool may talk to (S4).

A name is resolved once, every address it has is judged, and the addresses returned here are
the only ones that the client connects to. One bad address among good ones refuses them all:
a resolver that mixes them is not answering honestly.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from executors.http.targets import DEFAULT_PORTS, Target, UnfitUrl, read_url

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Sequence[str]]
"""From host and port to addresses as text; raises OSError if there are none."""

NEVER_NAMES = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
        "metadata.platformequinix.com",
    }
)
"""Cloud metadata by name: refused whatever the name resolves to, listed or not."""

NEVER = tuple(
    (ipaddress.ip_network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this host"),
        ("100.100.100.200/32", "cloud metadata"),
        ("168.63.129.16/32", "cloud metadata"),
        ("169.254.0.0/16", "link-local, cloud metadata"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relays"),
        ("198.18.0.0/15", "benchmarks"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved, broadcast"),
        ("::/128", "this host"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard"),
        ("2001::/23", "protocol assignments, Teredo"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("fd00:ec2::/32", "cloud metadata"),
        ("fd20:ce::/32", "cloud metadata"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
"""No rule of a tool opens these. Sources: the IANA special-purpose registries, RFC 6890."""

PRIVATE = tuple(
    (ipaddress.ip_network(network), reason)
    for network, reason in (
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("172.16.0.0/12", "private"),
        ("192.168.0.0/16", "private"),
        ("::1/128", "loopback"),
        ("fc00::/7", "unique-local"),
    )
)
"""Open only to a host that the rules list under `private_hosts`."""

NAT64 = IPv6Network("64:ff9b::/96")
GLOBAL_UNICAST = IPv6Network("2000::/3")
ALWAYS_PORTS = frozenset(DEFAULT_PORTS.values())


class NotAllowed(Exception):
    """The outbound rules refuse this address; the message says which rule and what to do."""


class NotResolved(Exception):
    """The name has no address, or none was found in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundRules:
    """What one tool may reach.

    `hosts` are names or addresses, exact, or `*.example.com` for all names below one.
    `private_hosts` are allowed too, and may be loopback or private. `ports` come on top of
    80 and 443; `http` must be asked for. `headers` come on top of the usual ones.
    """

    hosts: tuple[str, ...] = ()
    private_hosts: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ("https",)
    ports: tuple[int, ...] = ()
    headers: tuple[str, ...] = ()

    def admits(self, host: str) -> bool:
        return any(_matches(host, rule) for rule in (*self.hosts, *self.private_hosts))

    def may_be_private(self, host: str) -> bool:
        return any(_matches(host, rule) for rule in self.private_hosts)


def system_resolver(host: str, port: int) -> list[str]:
    """Every A and AAAA of `host`, in the system's order of preference."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def allowed(url: str, rules: OutboundRules, resolve: Resolver = system_resolver) -> list[str]:
    """Return the checked addresses of `url`, or raise NotAllowed or NotResolved."""
    try:
        return checked_addresses(read_url(url), rules, resolve)
    except UnfitUrl as unfit:
        raise NotAllowed(str(unfit)) from unfit


def checked_addresses(target: Target, rules: OutboundRules, resolve: Resolver) -> list[str]:
    """Judge `target` by its name, resolve it once, judge every address it has.

    Returns the addresses to connect to, at least one, in the resolver's order.
    Raises NotAllowed (nothing was sent, and a repeat meets the same rule) or NotResolved.
    """
    judge_name(target, rules)
    texts = [target.host] if target.is_literal else _resolved(target, resolve)
    private = rules.may_be_private(target.host)
    for text in texts:
        reason = why_refused(text, private=private)
        if reason:
            raise NotAllowed(
                f"{target.host} has an address that no tool may reach ({reason}). Nothing was "
                "sent. If this host is meant, an admin lists it under private_hosts."
            )
    return texts


def judge_name(target: Target, rules: OutboundRules) -> None:
    """Raise NotAllowed if scheme, port or host are not in the rules."""
    if target.scheme not in rules.schemes:
        raise NotAllowed(
            f"{target.scheme} is not allowed for this tool, only {' or '.join(rules.schemes)}. "
            "Nothing was sent. An admin adds the scheme to the tool's outbound rules."
        )
    if target.port not in ALWAYS_PORTS and target.port not in rules.ports:
        raise NotAllowed(
            f"Port {target.port} is not allowed for this tool. Nothing was sent. "
            "An admin adds it to the ports of the tool's outbound rules."
        )
    if target.host in NEVER_NAMES:
        raise NotAllowed(f"{target.host} is a cloud metadata name. No tool may reach it.")
    if not rules.admits(target.host):
        raise NotAllowed(
            f"{target.host} is not among the hosts of this tool. Nothing was sent. "
            "An admin adds it to the hosts of the tool's outbound rules."
        )


def why_refused(text: str, *, private: bool = False) -> str:
    """The reason not to connect to an address, or "" if it may be reached."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "not an address"
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return "an address with a zone"
        if address in NAT64:
            return why_refused(str(IPv4Address(int(address) & 0xFFFFFFFF)), private=private)
    return _named(address, NEVER) or _unless_private(address, private)


def _unless_private(address: Address, private: bool) -> str:
    reason = _named(address, PRIVATE)
    if reason:
        return "" if private else reason
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return "not global unicast"
    return "" if address.is_global else "not global"


def _named(address: Address, table: Sequence[tuple[IPv4Network | IPv6Network, str]]) -> str:
    return next((reason for network, reason in table if address in network), "")


def _resolved(target: Target, resolve: Resolver) -> list[str]:
    try:
        texts = list(resolve(target.host, target.port))
    except (OSError, UnicodeError) as silent:
        raise NotResolved(f"The name {target.host} could not be resolved.") from silent
    if not texts:
        raise NotResolved(f"The name {target.host} has no address.")
    return texts


def _matches(host: str, rule: str) -> bool:
    if rule.startswith("*."):
        return host.endswith(rule[1:])
    return host == rule
