"""Pauses inside a tool, for drills: long, visible, and ended when the ledger says so.

A pause sends heartbeats with a cursor, so the lease holds while a drill waits for its moment.
"""

import threading
import time

from executors.contract import Context
from executors.python import NotBegun
from ledger.vocabulary import Instruction

PAUSE_S_MAX = 60
PAUSE_SCHEMA = {"type": "number", "minimum": 0, "maximum": PAUSE_S_MAX}
STOPS = frozenset({Instruction.CANCEL, Instruction.STOP})


def pause(context: Context, seconds: float, *, phase: str, begun: bool) -> None:
    """Wait `seconds`, at most 60, with a heartbeat each third of the lease.

    Where the effect has not `begun`, a request to stop raises `NotBegun`; afterwards the tool
    goes on to its end, because half an effect is worse than a late one.
    """
    ends = time.monotonic() + min(seconds, PAUSE_S_MAX)
    while (left := ends - time.monotonic()) > 0:
        cursor = {"phase": phase, "left_s": round(left, 1)}
        if context.heartbeat(cursor=cursor) in STOPS and not begun:
            raise NotBegun(f"The tool was asked to stop at {phase!r}, before its effect began.")
        threading.Event().wait(min(left, context.assignment.lease_s / 3))
