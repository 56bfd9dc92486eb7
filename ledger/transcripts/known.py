"""What the ledger knows of the calls of a session: handed in, read only, never asked for.

Filled by whoever holds the ledger; empty for a transcript that the ledger never saw.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.transcripts.neutral import Call, Entry, Opaque, Result, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCall:
    """One call as recorded, with what it is shown as.

    `result` are the recorded bytes as parts, or a person's settlement in their place; None while
    there is neither. `delivery` says which (`real`, `replayed`, `operator-stated`). Without a
    result the call is shown as `notice`, the text that holds for it with its `template`: a fixed
    text, or one that carries partial output (`partial`); empty for a call still under way, which
    stays open in the stored copy. `reply` is the whole reply that asked for it (its calls with
    their ledger ids, its opaque reasoning), None where the ledger does not hold it whole.
    """

    ledger_id: str
    provider_id: str
    tool: str
    call: Call
    turn: int = 0
    step: int = 0
    position: int = 0
    result: tuple[Text | Opaque, ...] | None = None
    is_error: bool = False
    delivery: str = "real"
    template: str = ""
    notice: str = ""
    reply: Entry | None = None

    @property
    def place(self) -> tuple[int, int, int]:
        """Its order in the session: turn, model step, position in the step."""
        return self.turn, self.step, self.position

    def answer(self, answers: str | None) -> Result | None:
        """The recorded result, as an answer to the id that the transcript uses."""
        if self.result is None:
            return None
        return Result(
            answers=answers,
            parts=self.result,
            name=self.tool,
            is_error=self.is_error,
            kind=self.call.kind,
            ledger_id=self.ledger_id,
            delivery=self.delivery,
        )


class Known:
    """The calls of one session, found by our id or by what the provider called them."""

    def __init__(self, calls: Iterable[KnownCall] = ()) -> None:
        self._by_id: dict[str, KnownCall] = {}
        self._by_label: defaultdict[str, list[KnownCall]] = defaultdict(list)
        for call in sorted(calls, key=lambda each: each.place):
            self._by_id[call.ledger_id] = call
            self._by_label[call.provider_id].append(call)

    def __len__(self) -> int:
        return len(self._by_id)

    def by_id(self, ledger_id: str) -> KnownCall | None:
        """The call with our id."""
        return self._by_id.get(ledger_id)

    def by_label(self, provider_id: str | None, tool: str = "") -> Sequence[KnownCall]:
        """Calls that bear the provider's id, in order; of one tool where its name is given."""
        bearers = self._by_label.get(provider_id or "", [])
        return [call for call in bearers if call.tool == tool] if tool else bearers


NOTHING_KNOWN = Known()
