"""The operator tests as rows of a table: each one call, one break, one expectation."""

from drills.rows import hand_off, read, render, send, sign_in, write
from drills.rows.row import Test

TESTS: tuple[Test, ...] = (
    read.KILLED,
    write.KILLED,
    write.HALF,
    render.RESTARTED,
    render.FORGOTTEN,
    hand_off.KILLED,
    sign_in.UNANSWERED,
    send.KILLED,
    send.STOPPED,
)
"""In the order of their numbers; those of one stage run at once, since they break other things."""
