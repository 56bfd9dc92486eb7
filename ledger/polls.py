"""How a poll or a probe ends: one move each, said once for reports, losses and late sweeps.

Neither is an attempt of the policy. Ending one always dates the next step, so that no call waits
for an answer that will not come. The caller holds the call's lock and ends the attempt itself.
"""

from typing import Any

from ledger.journal import Move
from ledger.models import ToolCall
from ledger.vocabulary import Actor, Cause, Deadline, ProbeFinding


def poll_ended(
    call: ToolCall,
    *,
    by: Actor,
    next_s: float,
    fence: int | None = None,
    cause: Cause | None = None,
) -> Move:
    """The work goes on, or its poll brought no news; ask again in `next_s` seconds."""
    return Move(
        call=call,
        kind="poll_ended",
        by=by,
        fence=fence,
        cause=cause,
        arm={Deadline.NEXT_POLL: next_s, Deadline.HEARTBEAT: None},
    )


def probe_ended(
    call: ToolCall,
    *,
    by: Actor,
    finding: ProbeFinding,
    fence: int | None = None,
    cause: Cause | None = None,
    **facts: Any,
) -> Move:
    """The outside was asked; recovery takes its next step at once."""
    return Move(
        call=call,
        kind="probe_ended",
        by=by,
        fence=fence,
        cause=cause,
        facts={"finding": str(finding), **facts},
        arm={Deadline.NEXT_STEP: 0.0, Deadline.HEARTBEAT: None},
        columns={"reason": "probed"},
    )
