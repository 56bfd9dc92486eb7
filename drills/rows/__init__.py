"""The operator tests as rows of a table: each one call, one break, one expectation."""

from drills.rows import read, render, send, sign_in, write
from drills.rows.row import ABSENT, Test

TESTS: tuple[Test, ...] = (
    read.KILLED,
    write.KILLED,
    write.HALF,
    render.RESTARTED,
    render.FORGOTTEN,
    sign_in.UNANSWERED,
    send.KILLED,
    send.STOPPED,
)
"""In the order of their numbers; those of one stage run at once, since they break other things."""

NOT_YET = ABSENT
