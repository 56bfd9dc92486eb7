"""Loads the bad-input corpus: `tests/corpus/<class>.json`, described in its README.

Bodies are recipes, so that a mebibyte of brackets is one line. A recipe is a list of pieces,
built here with the standard library and without the strict reader that they attack.
"""

import base64
import gzip
import io
import json
import stat
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "corpus"
SUBMIT = (b'{"tool":"sandbox.lookup","arguments":', b"}")
_EPOCH = (2026, 1, 1, 0, 0, 0)
_COMMON = {"id", "channels", "why", "expect", "headers", "body", "arguments"}

Piece = Any  # a str, or one object of the kinds in `_BUILDERS`


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What must come of an entry; `more` holds what only its class knows.

    `status`: the HTTP answers that are right (empty: the channel has none). `codes`: what the
    strict reader calls it, when it is the one that refuses.
    """

    outcome: str
    status: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One attack: through which channels it goes, why it is one, what must come of it.

    `headers` are pairs, since a header may come twice. `more` holds what only the class knows:
    `steps`, `python`, `resolves`, `query`.
    """

    id: str
    corpus: str
    channels: tuple[str, ...]
    why: str
    expect: Expectation
    headers: tuple[tuple[str, str], ...] = ()
    more: dict[str, Any] = field(default_factory=dict)
    pieces: tuple[Piece, ...] = ()
    in_submit: bool = False

    def bytes(self) -> bytes:
        """The body, or the text of a path or address, as bytes; built anew on each call."""
        body = build(self.pieces)[: self.more.get("keep_bytes")]
        return SUBMIT[0] + body + SUBMIT[1] if self.in_submit else body

    def text(self) -> str:
        """The same as text, for entries that are text: paths, addresses, markup."""
        return self.bytes().decode()


def classes() -> list[str]:
    """The names of the fourteen classes."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def reach(corpus: str) -> int:
    """How many entries the class must have at least."""
    return int(_file(corpus)["reach"])


def load(corpus: str, *, channel: str = "") -> list[Entry]:
    """The entries of one class, of one channel if one is named."""
    entries = [_entry(corpus, record) for record in _file(corpus)["entries"]]
    return [entry for entry in entries if not channel or channel in entry.channels]


def load_all(*, channel: str) -> list[Entry]:
    """Every entry of every class that goes through `channel`."""
    return [entry for corpus in classes() for entry in load(corpus, channel=channel)]


def build(pieces: list[Piece] | tuple[Piece, ...]) -> bytes:
    """The bytes of a recipe. Raises KeyError for a kind of piece that does not exist."""
    return b"".join(map(_built, pieces))


@cache
def _file(corpus: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / f"{corpus}.json").read_bytes())
    return loaded


def _entry(corpus: str, record: dict[str, Any]) -> Entry:
    return Entry(
        id=record["id"],
        corpus=corpus,
        channels=tuple(record["channels"]),
        why=record["why"],
        expect=_expectation(record["expect"]),
        headers=tuple((name, _header(value)) for name, value in record.get("headers", [])),
        more={key: value for key, value in record.items() if key not in _COMMON},
        pieces=tuple(record.get("arguments", record.get("body", []))),
        in_submit="arguments" in record,
    )


def _expectation(record: dict[str, Any]) -> Expectation:
    codes = record.get("code", [])
    return Expectation(
        outcome=record["outcome"],
        status=tuple(record.get("status", [])),
        codes=(codes,) if isinstance(codes, str) else tuple(codes),
        more={key: record[key] for key in record.keys() - {"outcome", "status", "code"}},
    )


def _header(value: Piece) -> str:
    if isinstance(value, str):
        return value
    return str(value.get("prefix", "")) + _built(value).decode()


def _built(piece: Piece) -> bytes:
    if isinstance(piece, str):
        return piece.encode()
    kind = next(iter(piece.keys() & _BUILDERS.keys()), "")
    return _BUILDERS[kind](piece)


def _zip(piece: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name are the point of an entry
        for member in piece["zip"]:
            for number in range(member.get("times", 1)):
                archive.writestr(*_zip_member(member, number))
    return out.getvalue()


def _zip_member(member: dict[str, Any], number: int) -> tuple[zipfile.ZipInfo, bytes]:
    name = f"{member['name']}{number}" if "times" in member else member["name"]
    entry = zipfile.ZipInfo("x", _EPOCH)
    entry.filename = name  # set afterwards: the constructor would tame separators and NUL
    entry.compress_type = zipfile.ZIP_DEFLATED
    if "link" in member:
        entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        return entry, member["link"].encode()
    return entry, build(member["body"])


def _tar(piece: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for member in piece["tar"]:
            entry, body = tarfile.TarInfo(member["name"]), build(member.get("body", []))
            entry.size = len(body)
            if "hard_link" in member:
                entry.type, entry.linkname = tarfile.LNKTYPE, member["hard_link"]
            if "device" in member:
                entry.type, entry.devmajor, entry.devminor = tarfile.CHRTYPE, 1, 5
            archive.addfile(entry, io.BytesIO(body))
    return out.getvalue()


_BUILDERS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "repeat": lambda piece: piece["repeat"].encode() * piece["times"],
    "base64": lambda piece: base64.b64decode(piece["base64"], validate=True),
    "gzip": lambda piece: gzip.compress(build(piece["gzip"]), mtime=0),
    "zip": _zip,
    "tar": _tar,
}
