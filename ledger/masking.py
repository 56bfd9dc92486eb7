"""Masking: secrets leave the ledger as `•••• masked (authorization) #a91f3c` (console, section 14).

A value is masked by the name of its key, by a mark in the tool's schema (`x-secret`, or a JSON
pointer), or by what it looks like. The tag is a keyed hash: equal secrets look equal, and the tag
says nothing of the value. Whatever a page, an export, a log or a notification shows of arguments
and results goes through here first, before it is clipped, so that no half of a secret is left.

Every pattern is linear in the length of the text: no quantifier inside another.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ledger import secrets

SECRET_KEYS = frozenset(
    {
        "accesskey", "accesstoken", "apikey", "apisecret", "apitoken", "auth", "authorization",
        "authtoken", "bearer", "bearertoken", "clientsecret", "connectionstring", "cookie",
        "credential", "credentials", "csrftoken", "cvc", "cvv", "encryptionkey", "idtoken", "jwt",
        "masterkey", "mfacode", "onetimecode", "otp", "passphrase", "passwd", "password", "pin",
        "privatekey", "proxyauthorization", "pwd", "refreshtoken", "secret", "secretaccesskey",
        "secretkey", "securitycode", "sessionid", "sessiontoken", "setcookie", "signingkey",
        "token", "totp", "webhooksecret", "xapikey", "xauthtoken",
    }
)  # fmt: skip
"""Names of keys whose value is secret, without case and separators."""

PATTERNS: dict[str, re.Pattern[str]] = {
    "private key": re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
        re.DOTALL,
    ),
    "authorization": re.compile(
        r"(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{12,4096}|(?<=[Bb]asic )[A-Za-z0-9+/=]{12,4096}"
    ),
    "signed token": re.compile(
        r"\beyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{2,8192}\.[A-Za-z0-9_-]{0,2048}"
    ),
    "API key": re.compile(
        r"\b(?:clh_(?:live|test)_[0-9A-Za-z_]{20,80}|sk-[A-Za-z0-9_-]{16,200}"
        r"|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,200}|gh[opsur]_[A-Za-z0-9]{20,255}"
        r"|github_pat_[A-Za-z0-9_]{20,255}|glpat-[A-Za-z0-9_-]{16,100}"
        r"|xox[abeprs]-[A-Za-z0-9-]{10,250}|xapp-[A-Za-z0-9-]{10,250}"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,400}"
        r"|npm_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,60}|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,90})"
    ),
    "password in an address": re.compile(r"(?<=://)[^\s/:@]{0,200}:[^\s/@]{1,400}(?=@)"),
}
"""What a secret looks like wherever it stands, by the word that the mask shows."""

NAMED_IN_TEXT = re.compile(
    r"(?i)(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?token|refresh[_-]?token"
    r"|client[_-]?secret|private[_-]?key|authorization)"
    r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?!(?:[Bb]earer|[Bb]asic) )(?P<value>[^\s\"',;&}•]{3,4096})"
)
"""A secret beside its name in text that is no JSON: `password=…`, `"api_key": "…"`."""

MASK = "•••• masked"


def mark(value: Any, why: str) -> str:
    """What stands in place of a secret; equal values have equal tags."""
    text = value if isinstance(value, str) else repr(value)
    return f"{MASK} ({why}) #{secrets.keyed_hash('masked:' + text).hex()[:6]}"


def is_secret_key(name: str) -> bool:
    """Whether the value beside this key is secret, whatever it is."""
    return re.sub(r"[\s_.-]", "", name).lower() in SECRET_KEYS


def masked_text(text: str) -> str:
    """Text with every secret in it masked by what it looks like."""
    for why, pattern in PATTERNS.items():
        text = pattern.sub(lambda found, why=why: mark(found[0], why), text)  # type: ignore[misc]
    return NAMED_IN_TEXT.sub(_beside_its_name, text)


def _beside_its_name(found: re.Match[str]) -> str:
    start = found.start("value") - found.start()
    name = re.split(r"[\"'\s:=]", found[0], maxsplit=1)[0].lower()
    return found[0][:start] + mark(found["value"], name)


def masked(value: Any, *, pointers: Iterable[str] = ()) -> Any:
    """A JSON value with its secrets masked, as a new value.

    `pointers` are JSON pointers (RFC 6901) of what is secret for this tool; `*` stands for any
    one member or item. Keys are kept: a name is no secret.
    """
    return _masked(value, (), [_parts(pointer) for pointer in pointers])


def _parts(pointer: str) -> tuple[str, ...]:
    return tuple(each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:])


def _masked(value: Any, path: tuple[str, ...], pointers: list[tuple[str, ...]]) -> Any:
    if path and value is not None and any(_is_at(path, pointer) for pointer in pointers):
        return mark(value, path[-1])
    if isinstance(value, Mapping):
        return {key: _member(key, each, path, pointers) for key, each in value.items()}
    if isinstance(value, list):
        return [_masked(each, (*path, str(n)), pointers) for n, each in enumerate(value)]
    return masked_text(value) if isinstance(value, str) else value


def _member(key: str, value: Any, path: tuple[str, ...], pointers: list[tuple[str, ...]]) -> Any:
    if is_secret_key(key) and not _says_nothing(value):
        return mark(value, key.lower()[:40])
    return _masked(value, (*path, key), pointers)


def _says_nothing(value: Any) -> bool:
    """Nothing, a yes or no, or a reference to a secret that is kept elsewhere."""
    is_reference = isinstance(value, Mapping) and set(value) == {"$secret"}
    return value is None or value == "" or isinstance(value, bool) or is_reference


def _is_at(path: tuple[str, ...], pointer: tuple[str, ...]) -> bool:
    return len(path) == len(pointer) and all(
        want in ("*", got) for got, want in zip(path, pointer, strict=True)
    )


def secret_pointers(schema: Any, at: str = "") -> list[str]:
    """The pointers of what an input schema marks as secret: `x-secret`, `writeOnly`, password."""
    if not isinstance(schema, Mapping):
        return []
    marks = (schema.get("x-secret"), schema.get("writeOnly"), schema.get("format") == "password")
    if at and any(each is True for each in marks):
        return [at]
    members = schema.get("properties")
    found = secret_pointers(schema.get("items"), f"{at}/*")
    for name, member in members.items() if isinstance(members, Mapping) else ():
        found += secret_pointers(member, f"{at}/{name.replace('~', '~0').replace('/', '~1')}")
    return found
