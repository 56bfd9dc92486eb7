"""What the steps of a repair write down while they work; places are known only at the end."""

from collections.abc import Mapping
from typing import Any

from ledger.transcripts.blocks import Piece
from ledger.transcripts.neutral import Call, Result
from ledger.transcripts.report import REPORTED, Change, digest


class Log:
    """The changes in the order made; `to` is looked up by the piece when the layout is done."""

    def __init__(self) -> None:
        self._notes: list[tuple[str, Piece | None, dict[str, Any]]] = []

    def note(self, kind: str, piece: Piece | None = None, **words: Any) -> None:
        """One change. `piece` is what stands in the output; what left it has none."""
        if words.get("from_at", 0) is not None and words.get("from_at", 0) < 0:
            del words["from_at"]  # nothing of the input: the ledger restored it, or we wrote it
        self._notes.append((kind, piece, words))

    def drop(self, kind: str, piece: Piece, reason: str, *, differs: bool | None = None) -> None:
        """A result that leaves the sent copy: never without its digest and the reason (T5)."""
        part = piece.part
        assert isinstance(part, Result)  # noqa: S101
        self.note(
            kind,
            from_at=piece.at,
            provider_id=part.answers,
            digest=digest(part),
            reason=reason,
            differs=differs,
            results=1,
        )

    def drop_call(self, piece: Piece, reason: str) -> None:
        """A call that is not sent."""
        part = piece.part
        assert isinstance(part, Call)  # noqa: S101
        self.note(
            "call_dropped",
            from_at=piece.at,
            provider_id=part.id,
            call=part.ledger_id,
            reason=reason,
        )

    @property
    def alters(self) -> bool:
        """Whether anything has been noted that a sound conversation cannot have (T1)."""
        return any(
            kind not in REPORTED and words.get("reason") != "failed_reply"
            for kind, _, words in self._notes
        )

    def keep_reported(self) -> None:
        """Forget everything that is not done after all, since the input goes out as it came."""
        self._notes = [note for note in self._notes if note[0] in REPORTED]

    def changes(self, places: Mapping[int, int]) -> list[Change]:
        """All of it; `places` are the entries of the output by the identity of their pieces."""
        return [
            Change(kind=kind, to=places.get(id(piece)) if piece else None, **words)
            for kind, piece, words in self._notes
        ]
