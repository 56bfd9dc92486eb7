"""The one strict reading of a URL.

What is read here is what is checked and what is connected to: the parts go to the wire as
they are, and no second parser ever sees the text. So whatever two parsers might read in two
ways is refused instead of being understood.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urljoin

DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#\\]*)(?P<target>[/?][^#]*)?", re.ASCII)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:(?P<port>[0-9]{1,5}))?", re.ASCII)
_TARGET = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*", re.ASCII)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_DOT = re.compile(r"\.|%2e", re.ASCII | re.IGNORECASE)


class UnfitUrl(ValueError):
    """This text is not a URL that we would send a request to; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. `host` is lower-case, without brackets or final dot.

    `path` is path and query as they go on the request line, percent-encoded ASCII.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def is_literal(self) -> bool:
        return ":" in self.host or _ends_in_number(self.host)

    @property
    def authority(self) -> str:
        """The value of the Host header (RFC 9110, 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """What may be shown of a request: never its path, which carries arguments."""
        return f"{self.scheme}://{self.authority}"


def read_url(url: str) -> Target:
    """Read an absolute http or https URL, or raise UnfitUrl with the reason."""
    if len(url) > 8192:
        raise UnfitUrl("The URL is longer than 8,192 characters. Send long values in the body.")
    scheme, colon, rest = url.partition(":")
    whole = _URL.fullmatch(scheme.lower() + colon + rest)
    if whole is None:
        raise UnfitUrl("The URL is not an absolute http or https URL without fragment.")
    host, port = _read_authority(whole["authority"].lower())
    path = whole["target"] or "/"
    path = path if path.startswith("/") else "/" + path
    _check_path(path)
    return Target(whole["scheme"], host, port or DEFAULT_PORTS[whole["scheme"]], path)


def read_redirect(base: Target, location: str) -> Target:
    """Read a Location header against the request it answers; raise UnfitUrl if it is unfit."""
    without_fragment = location.partition("#")[0].strip(" \t")
    try:
        return read_url(urljoin(base.origin + base.path, without_fragment))
    except ValueError as unreadable:
        raise UnfitUrl(f"The redirect cannot be followed. {unreadable}") from unreadable


def _read_authority(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise UnfitUrl("The URL carries a user name or password. Use a header with a secret.")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise UnfitUrl("The host of the URL is unreadable. Write it in ASCII (punycode).")
    port = int(parts["port"]) if parts["port"] else None
    if port is not None and not 0 < port < 65536:
        raise UnfitUrl(f"Port {port} does not exist; ports go from 1 to 65535.")
    return _read_host(parts["host"]), port


def _read_host(host: str) -> str:
    if host.startswith("["):
        return _canonical(host[1:-1], ipaddress.IPv6Address)
    host = host.removesuffix(".")
    if _ends_in_number(host):
        return _canonical(host, ipaddress.IPv4Address)
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise UnfitUrl("The host of the URL is not a name that can be resolved.")
    return host


def _canonical(text: str, kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address]) -> str:
    # Resolvers also read 0x7f.1, 0177.0.0.1 and 2130706433 as addresses; `ipaddress` does not.
    try:
        return str(kind(text))
    except ValueError:
        raise UnfitUrl(
            "The host of the URL is a number but not an address in its plain form. "
            "Write four decimal parts, or an IPv6 address in brackets."
        ) from None


def _ends_in_number(host: str) -> bool:
    return _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def _check_path(path: str) -> None:
    if _TARGET.fullmatch(path) is None:
        raise UnfitUrl("The path or query of the URL has characters that must be percent-encoded.")
    segments = path.partition("?")[0].split("/")
    if any(_DOT.sub("", segment) == "" and segment for segment in segments):
        raise UnfitUrl("The path of the URL climbs by a dot segment ('.' or '..').")
    if re.search(r"%(0[0-9a-f]|1[0-9a-f]|7f)", path.partition("?")[0], re.ASCII | re.IGNORECASE):
        raise UnfitUrl("The path of the URL has control characters in it.")
    if "%00" in path:
        raise UnfitUrl("The query of the URL has a NUL in it.")
