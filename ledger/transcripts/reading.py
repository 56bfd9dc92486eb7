"""Calls as they can be sent (T7, T10): names trimmed, arguments an object, half of one not sent.

Nothing is completed by guessing: what the ledger does not know is carried as the text that came.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ledger.transcripts.arguments import UNPARSED, written
from ledger.transcripts.blocks import Block, Piece
from ledger.transcripts.known import KnownCall
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Call, Role
from ledger.transcripts.profiles import Profile


class Reading:
    """One pass over the calls. `doomed` are those that are not sent, with the reason."""

    def __init__(
        self,
        profile: Profile,
        log: Log,
        *,
        ours: Mapping[int, KnownCall],
        offered: Collection[str] | None = None,
    ) -> None:
        self.profile, self.log, self.ours = profile, log, ours
        self.offered = None if offered is None else frozenset(offered)
        self.names = re.compile(profile.names)
        self.doomed: dict[int, str] = {}

    def run(self, blocks: Sequence[Block]) -> None:
        """Normalise every call in place; one in a message of the user is none (T7)."""
        for block in blocks:
            if block.role is not Role.ASSISTANT and block.calls and not block.screen_only:
                for piece in block.calls:
                    self.log.drop_call(piece, "malformed")
                block.pieces = [p for p in block.pieces if not isinstance(p.part, Call)]
            for piece in block.calls if not block.screen_only else ():
                self._call(piece)

    def _call(self, piece: Piece) -> None:
        call = piece.part
        assert isinstance(call, Call)  # noqa: S101
        ours = self.ours.get(id(piece))
        name = call.name.strip()
        if self._is_half_written(call, name):
            self._restore(piece, call, ours)
        elif self.offered is not None and name not in self.offered:
            self.doomed[id(piece)] = "not_offered"
        else:
            self._complete(piece, replace(call, name=name), ours)

    def _is_half_written(self, call: Call, name: str) -> bool:
        asked_nothing = call.arguments is None and call.unparsed is None
        return not call.id or asked_nothing or not self.names.fullmatch(name)

    def _restore(self, piece: Piece, call: Call, ours: KnownCall | None) -> None:
        if ours is None or not self.names.fullmatch(ours.tool):
            self.doomed[id(piece)] = "malformed"
            return
        label = call.id or ours.provider_id or ours.ledger_id
        piece.part = replace(ours.call, id=label, opaque=call.opaque, ledger_id=ours.ledger_id)
        self.log.note(
            "call_restored",
            piece,
            from_at=piece.at,
            call=ours.ledger_id,
            provider_id=label,
            source="ledger",
            reason="malformed",
        )

    def _complete(self, piece: Piece, call: Call, ours: KnownCall | None) -> None:
        reason = "" if call == piece.part else "name_trimmed"
        if call.arguments is None:
            call, reason = _with_arguments(call, ours)
        elif self._is_told_otherwise(call):
            text = written(call.arguments) if self.profile.arguments_as_text else None
            call, reason = replace(call, unparsed=text), "parsed"
        if reason:
            piece.part = call
            self.log.note(
                "arguments_normalised" if reason != "name_trimmed" else "name_filled",
                piece,
                from_at=piece.at,
                provider_id=call.id,
                call=call.ledger_id,
                reason=reason,
            )

    def _is_told_otherwise(self, call: Call) -> bool:
        """Whether arguments came as a text where an object is sent, or the reverse."""
        if call.kind != "function":
            return False
        text_in_text = (call.unparsed or "").lstrip().startswith('"')
        as_text = self.profile.arguments_as_text
        return text_in_text or (as_text is not None and as_text is (call.unparsed is None))


def _with_arguments(call: Call, ours: KnownCall | None) -> tuple[Call, str]:
    """The call with an object for arguments where the text holds none (T10)."""
    text = call.unparsed or ""
    if not text.strip():
        return replace(call, arguments={}, unparsed=None), "empty"
    if ours is not None and ours.call.arguments is not None:
        return replace(call, arguments=ours.call.arguments, unparsed=None), "cut_off"
    return replace(call, arguments={UNPARSED: text}, unparsed=None), "cut_off"
