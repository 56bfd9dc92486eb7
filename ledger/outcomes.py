"""What is shown of a call: its result as stored, or the fixed text that holds in its place.

One rule for every reader: the API, a rendered session and a delivery choose by `shown`, so that
nobody is told something else. Chosen from what `ledger/calls.py` read; no query here.
"""

from dataclasses import dataclass
from hashlib import sha256

from ledger import ids, notices, partials
from ledger.calls import Fetchable
from ledger.models import Result, ToolCall
from ledger.notices import Told
from ledger.transcripts import stored
from ledger.transcripts.neutral import Opaque, Text
from ledger.vocabulary import CallState, DeliveryKind

ITS_OWN = (DeliveryKind.REAL, DeliveryKind.REPLAYED)
"""Kinds that show the tool's own bytes; every other one shows a text of ours."""
OUTLIVED = ("interrupted", "stopped")
"""How a turn was closed that a call outlives."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model reads in the place of one call's result.

    `template` is empty where the tool speaks itself; `sha256` is that of the stored result, or
    of the text. `is_error` is the flag that formats have for it: notices carry it (T18). `parts`
    are those of a result that is more than one text.
    """

    kind: DeliveryKind
    text: str
    sha256: str
    template: str = ""
    version: int | None = None
    is_error: bool = False
    parts: tuple[Text | Opaque, ...] = ()

    @property
    def is_its_own(self) -> bool:
        """Whether these are the tool's own bytes."""
        return self.kind in ITS_OWN


def shown(fetched: Fetchable, *, turn_closed_as: str = "") -> Shown:
    """What holds of a call now; `turn_closed_as` says how its turn ended, if it has."""
    told = told_of(fetched)
    if told is not None:
        return of_text(told)
    if fetched.result is not None:
        return _of_result(fetched.call, fetched.result)
    if fetched.call.state is CallState.FAILED:
        return _of_error(fetched.call)
    if fetched.call.is_settled:
        return of_text(notices.render("unrecorded"))
    template = "outlives_turn" if turn_closed_as in OUTLIVED else "under_way"
    return of_text(notices.render(template))


def of_text(told: Told) -> Shown:
    """One of the fixed texts, as it is shown."""
    kind = DeliveryKind(told.kind)
    is_error = kind in (DeliveryKind.NOTICE, DeliveryKind.PARTIAL)
    return Shown(kind, told.text, told.sha256, told.template, told.version, is_error)


def _of_result(call: ToolCall, result: Result) -> Shown:
    # A twin never ran: it is shown the bytes that another call brought.
    kind = DeliveryKind.REAL if call.twin_of_id is None else DeliveryKind.REPLAYED
    parts = parts_of(result)
    return Shown(kind, text_of(result), result.sha256, is_error=result.is_error, parts=parts)


def _of_error(call: ToolCall) -> Shown:
    """The tool's own error is its answer, and has no text around it (semantics, section 14)."""
    digest = sha256(call.error.encode()).hexdigest()
    return Shown(DeliveryKind.REAL, call.error, digest, is_error=True)


def parts_of(result: Result) -> tuple[Text | Opaque, ...]:
    """The parts of a result that came as more than one text; nothing for every other one."""
    is_parts = result.media_type == stored.PARTS and not result.truncated
    return stored.result_parts(bytes(result.body)) if is_parts else ()


def text_of(result: Result) -> str:
    """A result as text: its bytes, or where they are no text, what they are."""
    if parts := parts_of(result):
        return "".join(part.text for part in parts if isinstance(part, Text))
    body = bytes(result.body)
    try:
        return body.decode()
    except UnicodeDecodeError:
        what = result.media_type or "binary"
        return f"[{what}: {result.size_bytes} bytes, sha256:{result.sha256}]"


def told_of(fetched: Fetchable) -> Told | None:
    """The text that holds for this reader."""
    kept = fetched.notice
    if fetched.other is not None:
        return told_of(fetched.other)
    if kept is None:
        return None if fetched.result else notices.for_call(fetched.call, _beyond_the_row(fetched))
    if kept.corrects and fetched.read_before:
        return Told("correction", kept.version, kept.correction)
    return Told(kept.template, kept.version, kept.text)


def _beyond_the_row(fetched: Fetchable) -> dict[str, str]:
    """What a text needs that the call's row does not have."""
    unfinished = fetched.unfinished
    if fetched.waits_for is not None:
        return {"call": ids.shown("call", fetched.waits_for)}
    if fetched.scope:
        return {"scope": fetched.scope}
    if not partials.is_incomplete(fetched.call, unfinished):
        return {}
    return {"partial": unfinished.partial.text if unfinished and unfinished.partial else ""}


def digest_of(fetched: Fetchable) -> str:
    """The digest of what a reader is given: of the result, else of the text kept in its place."""
    if fetched.notice is not None:
        return fetched.notice.sha256
    return fetched.result.sha256 if fetched.result else ""
