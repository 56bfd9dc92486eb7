"""Transcripts as files: one entry a line, a JSON array, or a request object that holds the array.

What a repair did not touch is written back byte for byte: each entry remembers the text that it
was read from, and is known again by being the same object. Only what changed is written anew.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

HOLDERS = ("messages", "input", "contents")
"""The members of a request object that may hold its transcript."""

_DECODER = json.JSONDecoder(parse_constant=lambda name: _refuse_constant(name))
_BLANKS = " \t\n\r"
_BLANK = re.compile(f"[{_BLANKS}]*")


class Illegible(Exception):
    """The file is no JSON in UTF-8. The sentence says where."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One entry and the text between `start` and `end` that it was read from."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A file's text, the value in it, and its entries where they stand.

    `member` is the key that holds the entries of an object, else empty; `is_lines` says that each
    entry is a line.
    """

    text: str
    value: Any
    pieces: Sequence[Piece]
    member: str = ""
    is_lines: bool = False

    def written(self, body: Any) -> str:
        """The file's text with this body; the very text where the body is the file's own value."""
        if body is self.value:
            return self.text
        if self.is_lines and isinstance(body, list):
            return "".join(f"{text}\n" for text in self._texts(body))
        if not self.member and isinstance(body, list) and self.pieces:
            return self._spliced(body)
        if self.member and self._only_entries_differ(body) and self.pieces:
            return self._spliced(body[self.member])
        return f"{_dumped(body, indent=2 if chr(10) in self.text.strip() else None)}\n"

    def _texts(self, entries: list[Any]) -> list[str]:
        known = {id(piece.value): piece for piece in self.pieces}
        found = [known.get(id(each)) for each in entries]
        return [
            self.text[piece.start : piece.end] if piece else _dumped(each)
            for piece, each in zip(found, entries, strict=True)
        ]

    def _spliced(self, entries: list[Any]) -> str:
        first, last = self.pieces[0], self.pieces[-1]
        between = ", "
        if len(self.pieces) > 1:
            between = self.text[first.end : self.pieces[1].start]
        inside = between.join(self._texts(entries))
        return self.text[: first.start] + inside + self.text[last.end :]

    def _only_entries_differ(self, body: Any) -> bool:
        if not isinstance(body, dict) or list(body) != list(self.value):
            return False
        others = (name for name in body if name != self.member)
        return all(body[name] == self.value[name] for name in others)


def read(content: bytes) -> TranscriptFile:
    """The transcript in a file's bytes. Raises Illegible."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Illegible(f"Byte {error.start} is not UTF-8.") from None
    found = _read(text)
    _refuse_half_characters(text, found.value)
    return found


def _read(text: str) -> TranscriptFile:
    start = _past_blanks(text, 0)
    if start == len(text):
        raise Illegible("The file is empty: it holds no transcript.")
    if text[start] == "[":
        return _array(text, start)
    if text[start] != "{":
        raise Illegible("The file begins neither with an object nor with an array.")
    whole, end = _value(text, start)
    if _past_blanks(text, end) < len(text) or not any(name in whole for name in HOLDERS):
        return _lines(text)
    return _object(text, start, whole)


def _lines(text: str) -> TranscriptFile:
    pieces, at = [], 0
    for number, line in enumerate(text.split("\n"), start=1):
        start, end = _past_blanks(line, 0), len(line.rstrip(_BLANKS))
        if start < end:
            value, read_to = _value(line, start, f"Line {number}: ")
            if read_to != end:
                raise Illegible(f"Line {number}: something follows the entry.")
            pieces.append(Piece(value, at + start, at + end))
        at += len(line) + 1
    return TranscriptFile(text, [piece.value for piece in pieces], pieces, is_lines=True)


def _array(text: str, start: int) -> TranscriptFile:
    pieces, end = _pieces(text, start)
    if _past_blanks(text, end) < len(text):
        raise Illegible(f"Something follows the array, at character {end}.")
    return TranscriptFile(text, [piece.value for piece in pieces], pieces)


def _object(text: str, start: int, whole: dict[str, Any]) -> TranscriptFile:
    """An object; its entries are read once more to learn where each stands."""
    at = start + 1
    while text[at := _past_blanks(text, at)] != "}":
        key, at = _value(text, at)
        at = _past_blanks(text, _past_blanks(text, at) + 1)
        if key in HOLDERS and text[at] == "[":
            pieces, _ = _pieces(text, at)
            if len(pieces) != len(whole[key]):
                raise Illegible(f"The object names {key} twice.")
            value = whole | {key: [piece.value for piece in pieces]}
            return TranscriptFile(text, value, pieces, member=key)
        _, at = _value(text, at)
        at = _past_blanks(text, at)
        at += text[at] == ","
    return TranscriptFile(text, whole, [])


def _pieces(text: str, start: int) -> tuple[list[Piece], int]:
    """The items of the array that begins at `start`, and where it ends."""
    pieces, at = [], _past_blanks(text, start + 1)
    while at < len(text) and text[at] != "]":
        value, end = _value(text, at)
        pieces.append(Piece(value, at, end))
        at = _past_blanks(text, end)
        if at < len(text) and text[at] == ",":
            at = _past_blanks(text, at + 1)
            if text[at : at + 1] in ("]", ""):
                raise Illegible(f"An entry is missing at character {at}.")
        elif text[at : at + 1] != "]":
            raise Illegible(f"A comma or the end of the array is missing at character {at}.")
    if at >= len(text):
        raise Illegible("The array does not end: the file is cut off.")
    return pieces, at + 1


def _value(text: str, at: int, place: str = "") -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise Illegible(f"{place}{error.msg} at character {error.pos}.") from None
    except RecursionError:
        raise Illegible(f"{place}The JSON nests too deep to be read.") from None


def _past_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _refuse_constant(name: str) -> NoReturn:
    raise Illegible(f"{name} is no JSON number.")


def _refuse_half_characters(text: str, value: Any) -> None:
    # Only an escape can bring one, and no provider takes it.
    if "\\u" in text:
        try:
            _dumped(value).encode()
        except UnicodeEncodeError:
            raise Illegible("A string holds half of a surrogate pair, which is no text.") from None


def _dumped(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
