"""The rules over values: one walk, used for what was parsed and for what was never bytes.

The walk recurses, but never deeper than the limit it enforces. A refusal collects its JSON
pointer on the way out, so the ordinary value pays nothing for it.
"""

import re
from typing import NoReturn
from unicodedata import normalize

from ledger.strictjson.limits import INTEGER_MAX, Limits
from ledger.strictjson.refusals import JSON, Code, NotStrict

_LAST_OF_PLANES = "".join(
    chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)
)
_UNKEPT = re.compile(f"[\x00\ud800-\udfff\ufdd0-\ufdef{_LAST_OF_PLANES}]")


class Marked:
    """Stands where a careful parse met something to refuse, so that the walk can say where."""

    __slots__ = ("code", "key")

    def __init__(self, code: Code, key: str | None = None) -> None:
        self.code = code
        self.key = key


class Walk:
    """One pass over one value. `names` counts the keys of all objects.

    `search`: strings may hold what the record cannot, so each is searched. `spellings`: keys
    may be outside ASCII, so two spellings of one key are looked for. A caller that knows
    better switches them off, to save time.
    """

    __slots__ = ("limits", "names", "nodes", "search", "short", "spellings")

    def __init__(self, limits: Limits, *, search: bool = True, spellings: bool = True) -> None:
        self.limits = limits
        self.search = search
        self.spellings = spellings
        self.short = limits.string_bytes // 4  # no character takes more than four bytes
        self.nodes = 1
        self.names = 0

    def visit(self, value: JSON, depth: int = 0) -> None:
        """Raise NotStrict unless `value`, held by `depth` containers, keeps every rule."""
        kind = type(value)
        if kind is str:
            if self.search or len(value) > self.short:
                self._visit_text(value)
        elif kind is dict:
            self._visit_object(value, depth + 1)
        elif kind is list:
            self._visit_array(value, depth + 1)
        elif kind is int:
            if not -INTEGER_MAX <= value <= INTEGER_MAX:
                raise NotStrict(Code.INTEGER_TOO_LARGE, limit=INTEGER_MAX)
        elif kind is float:
            if value - value != 0.0:  # true for both infinities and for NaN
                raise NotStrict(Code.NOT_FINITE)
        elif value is not None and kind is not bool:
            _refuse_stranger(value)

    def _visit_object(self, members: dict[str, JSON], depth: int) -> None:
        self._count(len(members), depth)
        self.names += len(members)
        longest = self.limits.key_characters
        for key in members:
            if type(key) is not str or len(key) > longest or self.search:
                self._visit_key(key)
        if self.spellings and not all(map(str.isascii, members)):
            _refuse_twin_spellings(members)
        for key, value in members.items():
            try:
                self.visit(value, depth)
            except NotStrict as refusal:
                raise refusal.within(key) from None

    def _visit_array(self, items: list[JSON], depth: int) -> None:
        self._count(len(items), depth)
        if len(items) > self.limits.items:
            raise NotStrict(Code.TOO_MANY_ITEMS, limit=self.limits.items)
        for index, value in enumerate(items):
            try:
                self.visit(value, depth)
            except NotStrict as refusal:
                raise refusal.within(index) from None

    def _count(self, members: int, depth: int) -> None:
        if depth > self.limits.depth:
            raise NotStrict(Code.TOO_DEEP, limit=self.limits.depth)
        self.nodes += members
        if self.nodes > self.limits.nodes:
            raise NotStrict(Code.TOO_MANY_NODES, limit=self.limits.nodes)

    def _visit_key(self, key: str) -> None:
        if type(key) is not str:
            raise NotStrict(Code.KEY_NOT_TEXT)
        if len(key) > self.limits.key_characters:
            raise NotStrict(Code.KEY_TOO_LONG, limit=self.limits.key_characters)
        if self.search:
            try:
                _refuse_unkept(key)
            except NotStrict as refusal:
                raise refusal.within(key) from None

    def _visit_text(self, text: str) -> None:
        _refuse_unkept(text)
        long = len(text) > self.short
        if long and len(text.encode()) > self.limits.string_bytes:
            raise NotStrict(Code.STRING_TOO_LONG, limit=self.limits.string_bytes)


def may_hold_noncharacters(utf8: bytes) -> bool:
    """False is certain: the bytes of every noncharacter contain one of these pairs."""
    return b"\xbf\xbe" in utf8 or b"\xbf\xbf" in utf8 or b"\xef\xb7" in utf8


def _is_plain(text: str) -> bool:
    if "\x00" in text:
        return False
    try:
        return text.isascii() or not may_hold_noncharacters(text.encode())
    except UnicodeEncodeError:
        return False


def _refuse_unkept(text: str) -> None:
    # The expression takes 40 times as long as the look before it.
    found = None if _is_plain(text) else _UNKEPT.search(text)
    if found is None:
        return
    if found[0] == "\x00":
        raise NotStrict(Code.NUL_CHARACTER)
    surrogate = "\ud800" <= found[0] <= "\udfff"
    raise NotStrict(Code.LONE_SURROGATE if surrogate else Code.NONCHARACTER)


def _refuse_twin_spellings(members: dict[str, JSON]) -> None:
    seen: set[str] = set()
    for key in members:
        spelling = key if key.isascii() else normalize("NFC", key)
        if spelling in seen:
            raise NotStrict(Code.DUPLICATE_KEY).within(key)
        seen.add(spelling)


def _refuse_stranger(value: object) -> NoReturn:
    if not isinstance(value, Marked):
        raise NotStrict(Code.NOT_JSON)
    refusal = NotStrict(value.code)
    raise refusal if value.key is None else refusal.within(value.key)
