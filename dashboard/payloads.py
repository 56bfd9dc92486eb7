"""Payloads on a page: what a model sent or a tool answered, as a folded tree or as plain text.

Masked before anything is clipped; never markup, never fetched, binary never inline. Limits
(console, section 14): whole up to 64 kB, folded up to 256 kB, above that or above 2 000 nodes the
first 32 kB as text; a text over 2 kB or 12 lines is clipped in place, with what is left counted.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from django.template.defaultfilters import filesizeformat

from ledger import masking
from ledger.masking import NOTHING

WHOLE_BYTES = 64 * 1024
FOLDED_BYTES = 256 * 1024
NODES_MAX = 2_000
SHOWN_CHARACTERS = 32 * 1024
CLIP_CHARACTERS = 2_048
CLIP_LINES = 12
LEVELS_OPEN = 2
DATA = re.compile(r"(?i)data:([\w.+-]{1,80}/[\w.+-]{1,80})?(;[^,\s]{1,500})?,")
"""How a value begins that is a file itself (RFC 2397)."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a tree: a leaf, the opening of a branch (with its count), or its end."""

    opens: bool = False
    closes: bool = False
    is_open: bool = False
    key: str = ""
    kind: str = ""
    text: str = ""
    rest: str = ""
    more: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Payload:
    """What the viewer shows. `why` says why it is text and no tree; `source` frames it."""

    title: str
    source: str
    size_bytes: int
    sha256: str
    lines: list[Line] = field(default_factory=list)
    text: str = ""
    rest: str = ""
    more: str = ""
    why: str = ""
    media_type: str = ""
    is_binary: bool = False
    download: str = ""
    reveal: str = ""

    @property
    def size(self) -> str:
        """The size in words."""
        return filesizeformat(self.size_bytes)

    @property
    def raw(self) -> str:
        """Where what is shown as a tree is shown as text; empty where it is text already."""
        return f"{self.download}?view=raw" if self.lines and self.download else ""

    @property
    def is_copied(self) -> bool:
        """Whether the page offers to copy something of it."""
        return bool(self.lines or self.copied_from)

    @property
    def copied_from(self) -> str:
        """Where all of it is copied from: its download, or `page`; empty where it is too large."""
        if self.is_binary or self.size_bytes > FOLDED_BYTES:
            return ""
        is_here = bool(self.text) and (bool(self.rest) or not self.more)
        return self.download or ("page" if is_here else "")


FROM_MODEL = "from the model, not checked"
FROM_TOOL = "from the tool, not checked"
FROM_PERSON = "brought by a person, not checked"


def of_value(
    value: Any, *, title: str, source: str, size_bytes: int, sha256: str,
    pointers: Sequence[str] = (), known: Mapping[str, str] = NOTHING, **more: Any,
) -> Payload:  # fmt: skip
    """A JSON value as a tree, or as text where it is too large for one."""
    hidden = masking.masked(value, pointers=pointers, known=known)
    shown: dict[str, Any] = {
        "title": title,
        "source": source,
        "size_bytes": size_bytes,
        "sha256": sha256,
    } | more
    if hidden == value:
        shown.pop("reveal", None)
    nodes = _count(hidden)
    if size_bytes > FOLDED_BYTES or nodes > NODES_MAX:
        why = f"It has {nodes} nodes." if nodes > NODES_MAX else "It is larger than 256 kB."
        text = json.dumps(hidden, ensure_ascii=False, indent=1)
        return Payload(**shown, **_head(text, bool(shown.get("download"))), why=why)
    levels = LEVELS_OPEN if size_bytes <= WHOLE_BYTES else 0
    return Payload(**shown, lines=list(_lines(hidden, "", "", levels)))


def of_text(text: str, *, title: str, source: str, size_bytes: int | None = None,
            known: Mapping[str, str] = NOTHING, **more: Any) -> Payload:  # fmt: skip
    """Text that is no JSON: an error, partial output."""
    raw = text.encode(errors="replace")
    more.setdefault("sha256", hashlib.sha256(raw).hexdigest())
    size = len(raw) if size_bytes is None else size_bytes
    shown = masking.masked_text(text, known)
    if shown == text:
        more.pop("reveal", None)
    is_short = len(shown) <= SHOWN_CHARACTERS
    head = _clipped(shown) if is_short else _head(shown, bool(more.get("download")))
    return Payload(title=title, source=source, size_bytes=size, **head, **more)


def of_beginning(text: str, *, most: int, is_whole: bool, size_bytes: int, download: str,
                 known: Mapping[str, str] = NOTHING, **more: Any) -> Payload:  # fmt: skip
    """The beginning of a text, of which at least four times what is shown was read.

    Where that is not the whole, a secret may be cut at its end: so no more than a quarter is shown.
    """
    shown = masking.masked_text(text, known)
    rest = f"the rest of {filesizeformat(size_bytes)} is in the download"
    end = most if is_whole else min(most, len(shown) // 4)
    return Payload(text=shown[:end], more=rest, size_bytes=size_bytes,
                   download=download, **more)  # fmt: skip


def of_body(body: bytes, *, media_type: str, why_not_json: str, title: str, source: str,
            pointers: Sequence[str] = (), known: Mapping[str, str] = NOTHING,
            raw: bool = False, **more: Any) -> Payload:  # fmt: skip
    """Bytes as they were received: JSON, text, or something that is only described.

    With `raw`, JSON is text too, as it was received where nothing in it is masked.
    """
    shown: dict[str, Any] = {"title": title, "source": source, "media_type": media_type} | more
    size = shown.pop("size_bytes", len(body))
    if raw and not why_not_json:
        whole = whole_text(body, "", pointers, known, tidy=False).decode(errors="replace")
        return of_text(whole, size_bytes=size, known=known, **shown)
    if not why_not_json:
        return of_value(json.loads(body), size_bytes=size, pointers=pointers,
                        known=known, **shown)  # fmt: skip
    text = _as_text(body)
    if text is None:
        shown.setdefault("sha256", hashlib.sha256(body).hexdigest())
        shown.pop("reveal", None)
        return Payload(**shown, size_bytes=size, is_binary=True, why=why_not_json)
    return of_text(text, size_bytes=size, known=known, **shown, why=why_not_json)


def whole_text(body: bytes, why_not_json: str, pointers: Sequence[str] = (),
               known: Mapping[str, str] = NOTHING, *, tidy: bool = True) -> bytes:  # fmt: skip
    """All of a payload for a download, masked; bytes that are no text as they are."""
    if not why_not_json:
        value = json.loads(body)
        hidden = masking.masked(value, pointers=pointers, known=known)
        if not tidy and hidden == value:
            return body
        indent = 1 if tidy else None
        return json.dumps(hidden, ensure_ascii=False, indent=indent).encode(errors="replace")
    text = masking.text_in(body)
    hidden_text = masking.masked_text(text or "", known)
    return body if hidden_text == (text or "") else hidden_text.encode(errors="replace")


def _as_text(body: bytes) -> str | None:
    """UTF-8 without null bytes; None for what is binary."""
    text = masking.text_in(body)
    return None if text is None or "\x00" in text else text


def _head(text: str, is_given: bool) -> dict[str, Any]:
    """The beginning of a text, and where the rest of it is: in the download if one is given."""
    left = len(text) - SHOWN_CHARACTERS
    where = "in the download" if is_given else "not shown"
    more = f"{left} more characters are {where}" if left > 0 else ""
    return {"text": text[:SHOWN_CHARACTERS], "more": more}


def _clipped(text: str) -> dict[str, Any]:
    """The beginning of a text, the rest of it, and how much that is."""
    lines = text.splitlines(keepends=True)
    cut = min(len("".join(lines[:CLIP_LINES])), CLIP_CHARACTERS)
    if cut == len(text):
        return {"text": text}
    hidden = text[cut:].count("\n")
    size = filesizeformat(len(text.encode(errors="replace")))
    what = f"{hidden + 1} more lines, {size}" if hidden else size
    return {"text": text[:cut], "rest": text[cut:], "more": f"show all, {what}"}


def _count(value: Any) -> int:
    if isinstance(value, Mapping):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1


def _lines(value: Any, key: str, path: str, levels: int) -> Iterator[Line]:
    """The tree from top to bottom; `levels` more branches are open."""
    if not isinstance(value, Mapping | list):
        yield _leaf(value, key, path)
        return
    is_object = isinstance(value, Mapping)
    members = value.items() if isinstance(value, Mapping) else enumerate(value)
    noun = "member" if is_object else "item"
    count = f"{len(value)} {noun}{'' if len(value) == 1 else 's'}"
    yield Line(opens=True, is_open=levels > 0, key=key, kind="object" if is_object else "list",
               more=count, path=path)  # fmt: skip
    for name, member in members:
        at = str(name).replace("~", "~0").replace("/", "~1")
        yield from _lines(member, str(name), f"{path}/{at}", levels - 1)
    yield Line(closes=True)


def _leaf(value: Any, key: str, path: str) -> Line:
    if isinstance(value, str):
        if found := DATA.match(value):
            return Line(key=key, path=path, kind="data", text=_described(found, value))
        kind = "masked" if value.startswith(masking.MASK) else "text"
        return Line(key=key, path=path, kind=kind, **_clipped(value))
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else "word"
    return Line(key=key, path=path, kind=kind, text=json.dumps(value))


def _described(found: re.Match[str], value: str) -> str:
    """Type, size and digest of a `data:` value, which is never shown itself."""
    content = value[found.end() :]
    is_base64 = (found[2] or "").lower().endswith(";base64")
    try:
        body = base64.b64decode(content, validate=True) if is_base64 else unquote_to_bytes(content)
    except (binascii.Error, ValueError):
        body = content.encode(errors="replace")
    size, digest = filesizeformat(len(body)), hashlib.sha256(body).hexdigest()
    # Its blank would be drawn as the mark of one that hides.
    return f"data: {found[1] or 'text/plain'}, {size}, sha256 {digest}".replace("\xa0", " ")
