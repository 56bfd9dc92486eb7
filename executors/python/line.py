"""The tool's line to the ledger, with a memory of what was asked over it.

The executor must know whether the boundary was crossed and whether a handle was stored when
the tool raises or returns. A probe gets a line that cannot cross.
"""

from executors.contract import JSON, Assignment, Context, Handle
from ledger.vocabulary import Instruction


class Line:
    """A `Context` that remembers. `crossed` turns true before the question is sent: once it
    was asked, a lost answer may hide a commit, so nothing is "not begun" any more."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.crossed = context.assignment.crossed
        self.handle: Handle | None = None

    @property
    def assignment(self) -> Assignment:
        return self._context.assignment

    def remaining_s(self) -> float:
        return self._context.remaining_s()

    def cross(self) -> None:
        self.crossed = True
        self._context.cross()

    def heartbeat(self, *, cursor: JSON = None, partial: bytes | None = None) -> Instruction:
        return self._context.heartbeat(cursor=cursor, partial=partial)

    def store_handle(self, handle: Handle) -> None:
        self._context.store_handle(handle)
        self.handle = handle


class ReadingLine(Line):
    """The line of a probe or a poll: it reads, so it may neither cross nor start anything."""

    def cross(self) -> None:
        raise PermissionError(
            "A probe or a poll asked to cross the boundary. It only reads, so nothing was "
            "crossed. Move the effect into the tool's own function."
        )
