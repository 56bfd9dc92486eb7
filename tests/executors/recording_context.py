"""A `Context` that records what was asked of it, for tests of executors without a ledger."""

import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from executors.contract import JSON, Assignment, FenceLost, Handle
from ledger.vocabulary import AttemptKind, Boundary, Instruction, RecoveryClass

CALL_ID = UUID("01890000-0000-7000-8000-000000000001")
WORKSPACE_ID = UUID("01890000-0000-7000-8000-00000000000a")
DEFAULTS: dict[str, Any] = {
    "call_id": CALL_ID,
    "fence": 1,
    "kind": AttemptKind.RUN,
    "workspace_id": WORKSPACE_ID,
    "tool": "sandbox.lookup",
    "tool_version": 1,
    "executor": "python",
    "executor_config": {},
    "recovery_class": RecoveryClass.SIDE_EFFECT,
    "boundary": Boundary.AT_START,
    "arguments": {},
    "idempotency_key": "key-1",
    "marker": f"clearhouse-{CALL_ID}",
}


def an_assignment(**changes: Any) -> Assignment:
    """One claimed attempt with plain values; `changes` replace them by field name."""
    return Assignment(**{**DEFAULTS, **changes})


class RecordingContext:
    """Records every request in `calls` as `(verb, *values)`.

    `remaining` is what `remaining_s()` answers. `lose_fence_at` names the verb at which the
    fence is lost (`"cross"`, `"heartbeat"`, `"store_handle"`), or a number: the count of
    requests after which the next one is refused. `instruction` is what a heartbeat is
    answered. `on_call(verb)` runs after each recorded request, so a test can act in between.
    """

    def __init__(self, assignment: Assignment | None = None, **settings: Any) -> None:
        self.assignment = assignment or an_assignment()
        self.calls: list[tuple[Any, ...]] = []
        self.remaining: float = settings.pop("remaining", 30.0)
        self.lose_fence_at: str | int | None = settings.pop("lose_fence_at", None)
        self.instruction: Instruction = settings.pop("instruction", Instruction.GO_ON)
        self.on_call: Callable[[str], None] | None = settings.pop("on_call", None)
        self._changed = threading.Condition()
        if settings:
            raise TypeError(f"RecordingContext has no settings {sorted(settings)}.")

    def remaining_s(self) -> float:
        return max(0.0, self.remaining)

    def cross(self) -> None:
        self._record("cross")

    def heartbeat(self, *, cursor: JSON = None, partial: bytes | None = None) -> Instruction:
        self._record("heartbeat", cursor, partial)
        return self.instruction

    def store_handle(self, handle: Handle) -> None:
        self._record("store_handle", handle)

    @property
    def verbs(self) -> list[str]:
        return [call[0] for call in self.calls]

    @property
    def crossed(self) -> bool:
        return "cross" in self.verbs

    @property
    def handles(self) -> list[Handle]:
        return [call[1] for call in self.calls if call[0] == "store_handle"]

    def wait_for(self, verb: str, *, limit_s: float = 5.0) -> None:
        """Return once `verb` was recorded; raise AssertionError after `limit_s` seconds."""
        ends = time.monotonic() + limit_s
        with self._changed:
            while verb not in self.verbs:
                if not self._changed.wait(max(0.0, ends - time.monotonic())):
                    raise AssertionError(f"No {verb!r} within {limit_s} s; got {self.verbs}.")

    def _record(self, verb: str, *values: Any) -> None:
        with self._changed:
            if self.lose_fence_at in (verb, len(self.calls)):
                raise FenceLost(f"The fence was lost at {verb!r}, as the test asked.")
            self.calls.append((verb, *values))
            self._changed.notify_all()
        if self.on_call:
            self.on_call(verb)
