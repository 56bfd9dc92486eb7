"""Ids that the provider takes, rewritten in call and result in one step, injectively (T21).

An id that fits and is unique in the profile's scope stays; the first bearer of a repeated one
keeps it. A new one is a digest, so it depends on nothing but what it replaces.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from ledger.transcripts.blocks import Block, Piece
from ledger.transcripts.neutral import Call, Result, Role
from ledger.transcripts.profiles import Ids
from ledger.transcripts.report import Renamed


def rewrite(blocks: Sequence[Block], ids: Ids) -> list[Renamed]:
    """Give every call of paired blocks an id that fits, and its result the same.

    The results of a reply are the next in the order of their calls or bear the ids of the reply:
    each is the answer to the first call with its id that has none yet.
    """
    calls = [piece.part for block in blocks for piece in block.calls]
    names = _Names(ids, [call.id or "" for call in calls if isinstance(call, Call)])
    return [renamed for step in _steps(blocks) for renamed in _rewrite(step, names)]


def _steps(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Each reply and what answers it; a reply may be a run of items."""
    step: list[Block] = []
    for block in blocks:
        if block.role is Role.ASSISTANT and step and step[-1].role is not Role.ASSISTANT:
            yield step
            step = []
        step.append(block)
    yield step


def _rewrite(step: Sequence[Block], names: "_Names") -> Iterator[Renamed]:
    now_of: dict[str, deque[str]] = {}
    calls = [piece for block in step for piece in block.calls]
    if calls:
        names.begin_step()
    for index, piece in enumerate(calls):
        call = piece.part
        assert isinstance(call, Call)  # noqa: S101
        was, now = call.id or "", names.name(call)
        now_of.setdefault(was, deque()).append(now)
        if now != call.id:
            piece.part = call.renamed(now)
            yield Renamed(names.step, index, was, now)
    for block in step:
        _rewrite_results(block.pieces, now_of)


def _rewrite_results(pieces: Iterable[Piece], now_of: Mapping[str, deque[str]]) -> None:
    for piece in pieces:
        result = piece.part
        if isinstance(result, Result) and now_of.get(result.answers or ""):
            now = now_of[result.answers or ""].popleft()
            if now != result.answers:
                piece.part = result.answering(now)


class _Names:
    """The ids given so far in the scope, and those that calls brought along."""

    def __init__(self, ids: Ids, brought: Iterable[str]) -> None:
        self.ids = ids
        self.fits = re.compile(ids.pattern)
        self.reserved = {name for name in brought if self._is_sound(name)}
        self.taken: set[str] = set()
        self.bearers: Counter[str] = Counter()
        self.step = -1

    def begin_step(self) -> None:
        self.step += 1
        if self.ids.scope == "step":
            self.taken = set()

    def name(self, call: Call) -> str:
        was = call.id or ""
        bearer = self.bearers[was]
        self.bearers[was] += 1
        keeps = self._is_sound(was) and was not in self.taken
        now = was if keeps else self._made(call.ledger_id or f"{was}\0{bearer}")
        self.taken.add(now)
        return now

    def _is_sound(self, name: str) -> bool:
        longest = self.ids.longest or len(name)
        return bool(self.fits.fullmatch(name)) and len(name) <= longest

    def _made(self, seed: str) -> str:
        attempt = 0
        while True:
            made = self._digest(seed, attempt)
            if made not in self.taken and made not in self.reserved:
                return made
            attempt += 1

    def _digest(self, seed: str, attempt: int) -> str:
        text = f"{seed}\0{attempt}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(sha256(text).digest(), "big")
        length = self.ids.length - len(self.ids.prefix)
        letters = []
        for _ in range(length):
            number, letter = divmod(number, len(self.ids.alphabet))
            letters.append(self.ids.alphabet[letter])
        return self.ids.prefix + "".join(letters)
