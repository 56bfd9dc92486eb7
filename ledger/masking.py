"""Masking: secrets leave the ledger as `•••• masked (authorization) #a91f3c` (console, section 14).

A value is masked by the name of its key, by a mark in the tool's schema (`x-secret`), by a JSON
pointer of the tool's policy, or by what it looks like; `masks.py` gathers what holds for a call.
The tag is a keyed hash: equal secrets look equal, and the tag says nothing of the value. Whatever
a page, an export, a log or a notification shows goes through here first, before it is clipped, so
that no half of a secret is left. What is masked already stays as it is.

Every pattern is linear in the length of the text: no quantifier inside another.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
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

SECRET_WORDS = SECRET_KEYS - {"auth", "bearer", "cookie", "pin"} | {
    "accountnumber", "cardnumber", "iban", "pan", "ssn",
}  # fmt: skip
"""What sounds secret as a word, or two, of a longer name, such as `smtp_password`."""

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
MASKED = re.compile(r"•••• masked \([^()]{1,60}\) #[0-9a-f]{6}")
NOTHING: Mapping[str, str] = MappingProxyType({})
KNOWN_CHARACTERS_MIN = 6
"""How long a hidden text is at least that is hidden wherever else it stands."""


def mark(value: Any, why: str) -> str:
    """What stands in place of a secret; equal values have equal tags."""
    text = value if isinstance(value, str) else repr(value)
    return f"{MASK} ({why}) #{secrets.keyed_hash('masked:' + text).hex()[:6]}"


def is_secret_key(name: str) -> bool:
    """Whether the value beside this key is secret, whatever it is."""
    return re.sub(r"[\s_.-]", "", name).lower() in SECRET_KEYS


def text_in(body: bytes) -> str | None:
    """The text that these bytes are in UTF-8, or None; half a character at their end is left out.

    So a body of which only the beginning was kept is text too, and its secrets are masked.
    """
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return None


def masked_text(text: str, known: Mapping[str, str] = NOTHING) -> str:
    """Text with its secrets masked: those known to be one (text to why), and by their looks."""
    for secret, why in known.items():
        if secret in text:
            text = text.replace(secret, mark(secret, why))
    for why, pattern in PATTERNS.items():
        text = pattern.sub(lambda found, why=why: mark(found[0], why), text)  # type: ignore[misc]
    return NAMED_IN_TEXT.sub(_beside_its_name, text)


def _beside_its_name(found: re.Match[str]) -> str:
    start = found.start("value") - found.start()
    name = re.split(r"[\"'\s:=]", found[0], maxsplit=1)[0].lower()
    return found[0][:start] + mark(found["value"], name)


def masked(value: Any, *, pointers: Iterable[str] = (), known: Mapping[str, str] = NOTHING) -> Any:
    """A JSON value with its secrets masked, as a new value.

    `pointers` are JSON pointers (RFC 6901) of what is secret for this tool; `*` stands for any
    one member or item. `known` are texts that are secret wherever they stand, with why. Keys are
    kept: a name is no secret.
    """
    return _masked(value, (), [_parts(pointer) for pointer in pointers], known)


Path = tuple[str, ...]


def _parts(pointer: str) -> Path:
    return tuple(each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:])


def _masked(value: Any, path: Path, pointers: list[Path], known: Mapping[str, str]) -> Any:
    if why := _whole(value, path, pointers):
        return mark(value, why)
    if isinstance(value, str):
        return masked_text(value, known)
    members = _members(value)
    if isinstance(value, Mapping):
        return {key: _masked(each, (*path, key), pointers, known) for key, each in members}
    if isinstance(value, list | tuple):
        return [_masked(each, (*path, key), pointers, known) for key, each in members]
    return value


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return ((str(key), each) for key, each in value.items())
    return (
        ((str(n), each) for n, each in enumerate(value)) if isinstance(value, list | tuple) else ()
    )


def _whole(value: Any, path: Path, pointers: list[Path]) -> str:
    """Why a value is hidden as a whole; empty where it is not."""
    if not path or value is None or (isinstance(value, str) and MASKED.fullmatch(value)):
        return ""
    if any(_is_at(path, pointer) for pointer in pointers):
        return path[-1][:40]
    return path[-1].lower()[:40] if is_secret_key(path[-1]) and not _says_nothing(value) else ""


def _says_nothing(value: Any) -> bool:
    """Nothing, a yes or no, or a reference to a secret that is kept elsewhere."""
    is_reference = isinstance(value, Mapping) and set(value) == {"$secret"}
    return value is None or value == "" or isinstance(value, bool) or is_reference


def _is_at(path: Path, pointer: Path) -> bool:
    return len(path) == len(pointer) and all(
        want in ("*", got) for got, want in zip(path, pointer, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a value that `masked` hides, or hides a part of: where, what, and why."""

    pointer: str
    value: Any
    why: str


def fields(value: Any, pointers: Iterable[str] = ()) -> Iterator[Field]:
    """The fields of a value that are masked, in its order."""
    yield from _fields(value, (), [_parts(pointer) for pointer in pointers])


def _fields(value: Any, path: Path, pointers: list[Path]) -> Iterator[Field]:
    if why := _whole(value, path, pointers):
        yield Field(pointer_of(path), value, why)
    elif isinstance(value, str):
        if masked_text(value) != value:
            yield Field(pointer_of(path), value, "what it looks like")
    else:
        for key, each in _members(value):
            yield from _fields(each, (*path, key), pointers)


def pointer_of(path: Path) -> str:
    """A path as a JSON pointer; the whole value is the empty one (RFC 6901, section 5)."""
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)


def texts_in(value: Any, pointers: Iterable[str] = ()) -> dict[str, str]:
    """The texts that are hidden as a whole, with why: secret wherever else they stand.

    Short ones are left out: hiding every `1234` would hide amounts and dates as well.
    """
    found = [each for each in fields(value, pointers) if each.why != "what it looks like"]
    leaves = [(leaf, each.why) for each in found for leaf in _leaves(each.value)]
    longest_first = sorted(leaves, key=lambda leaf: -len(leaf[0]))
    return {text: why for text, why in longest_first if len(text) >= KNOWN_CHARACTERS_MIN}


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple):
        for _, each in _members(value):
            yield from _leaves(each)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield str(value)


def secret_pointers(schema: Any, at: str = "") -> list[str]:
    """The pointers of what an input schema marks as secret: `x-secret`, `writeOnly`, password."""
    if _is_marked(schema) and at:
        return [at]
    return [each for path, member in _below(schema, at) for each in secret_pointers(member, path)]


def unmasked(schema: Any, pointers: Iterable[str] = ()) -> list[str]:
    """The pointers of what an input schema gives a name that looks secret, and nothing masks.

    Names of SECRET_KEYS are masked wherever they stand, as are what the schema marks and what
    `pointers` name.
    """
    return list(_unmasked(schema, "", [_parts(pointer) for pointer in pointers]))


def _unmasked(schema: Any, at: str, pointers: list[Path]) -> Iterator[str]:
    for path, member in _below(schema, at):
        parts = _parts(path)
        hidden = is_secret_key(parts[-1]) or any(_is_at(parts, each) for each in pointers)
        if hidden or _is_marked(member):
            continue
        if _sounds_secret(parts[-1]) and _says_text(member):
            yield path
        else:
            yield from _unmasked(member, path, pointers)


def _sounds_secret(name: str) -> bool:
    words = re.sub(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])", " ", name).lower().split()
    pairs = (f"{one}{two}" for one, two in pairwise(words))
    return bool(SECRET_WORDS.intersection((*words, *pairs)))


def _says_text(schema: Any) -> bool:
    """Whether a value of this schema can say more than yes or no."""
    return not (isinstance(schema, Mapping) and schema.get("type") == "boolean")


def _is_marked(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    marks = (schema.get("x-secret"), schema.get("writeOnly"), schema.get("format") == "password")
    return any(each is True for each in marks)


def _below(schema: Any, at: str) -> Iterator[tuple[str, Any]]:
    """The items and members of an object's or list's schema, each with its pointer."""
    if not isinstance(schema, Mapping):
        return
    if isinstance(schema.get("items"), Mapping):
        yield f"{at}/*", schema["items"]
    members = schema.get("properties")
    for name, member in members.items() if isinstance(members, Mapping) else ():
        yield f"{at}/{name.replace('~', '~0').replace('/', '~1')}", member
