"""The published matrix: recovery class x what is known -> what recovery may do, as data.

`decisions.py` reads these rows and adds nothing to them; the documentation's matrix is made
from them and a test compares the two. Source: reliability, section 4; semantics, section 3.
"""

from dataclasses import dataclass

from ledger.vocabulary import RecoveryClass

R = RecoveryClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a recovery class allows once an attempt is lost.

    `repeats_when_possible`: a new attempt although the effect may have happened.
    `repeats_not_begun`: how often at most a call proven not begun is repeated by itself; None
    leaves it to the policy's attempts. `ends_open`: at the end of its time it is settled as
    `expired` although its effect is possible, and no operator is waited for.
    """

    code: str
    repeats_when_possible: bool
    repeats_not_begun: int | None
    ends_open: bool
    sentence: str


RULES: dict[RecoveryClass, Rule] = {
    R.READ_ONLY: Rule(
        code="reads_retry",
        repeats_when_possible=True,
        repeats_not_begun=None,
        ends_open=False,
        sentence="Reads retry: repeating changes nothing.",
    ),
    R.IDEMPOTENT_WRITE: Rule(
        code="writes_reconcile",
        repeats_when_possible=True,
        repeats_not_begun=None,
        ends_open=False,
        sentence="Idempotent writes reconcile: the same key makes a second effect impossible.",
    ),
    R.SIDE_EFFECT: Rule(
        code="side_effects_need_proof",
        repeats_when_possible=False,
        repeats_not_begun=1,
        ends_open=False,
        sentence="Side effects require proof: no second attempt before the first is disproved.",
    ),
    R.LONG_RUNNING: Rule(
        code="long_jobs_resume",
        repeats_when_possible=False,
        repeats_not_begun=1,
        ends_open=False,
        sentence="Long jobs resume by handle: they are found again, not started again.",
    ),
    R.PROVIDER_AUTH: Rule(
        code="auth_cannot_block",
        repeats_when_possible=True,
        repeats_not_begun=None,
        ends_open=True,
        sentence="Auth requests cannot block: a fresh flow within the cap, then the end.",
    ),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the published table: the letters and what they mean here."""

    letters: str
    sentence: str


ROWS = ("recorded_scheduled_backing_off", "running_not_begun", "running_possible", "parked",
        "settled_not_delivered", "ambiguous")  # fmt: skip

PUBLISHED: dict[tuple[str, RecoveryClass], Cell] = {
    **{("recorded_scheduled_backing_off", c): Cell("ring", "rung again") for c in R},
    **{("settled_not_delivered", c): Cell("K", "the stored result is kept and given") for c in R},
    ("running_not_begun", R.READ_ONLY): Cell("R", "repeated"),
    ("running_not_begun", R.IDEMPOTENT_WRITE): Cell("R", "repeated"),
    ("running_not_begun", R.SIDE_EFFECT): Cell("R", "repeated once"),
    ("running_not_begun", R.LONG_RUNNING): Cell("R", "repeated once"),
    ("running_not_begun", R.PROVIDER_AUTH): Cell("R", "repeated within the cap"),
    ("running_possible", R.READ_ONLY): Cell("R", "repeated: there is no boundary"),
    ("running_possible", R.IDEMPOTENT_WRITE): Cell("RK", "probed, then repeated under its key"),
    ("running_possible", R.SIDE_EFFECT): Cell("P/A", "probed, else ambiguous"),
    ("running_possible", R.LONG_RUNNING): Cell("H/P/A", "by handle, else probed, else ambiguous"),
    ("running_possible", R.PROVIDER_AUTH): Cell("F", "one fresh flow within the cap, else expired"),
    ("parked", R.READ_ONLY): Cell("R", "repeated"),
    ("parked", R.IDEMPOTENT_WRITE): Cell("H/RK", "by handle, else repeated under the same key"),
    ("parked", R.SIDE_EFFECT): Cell("H/P/A", "by handle, else probed, else ambiguous"),
    ("parked", R.LONG_RUNNING): Cell("H", "by handle, partial output kept"),
    ("parked", R.PROVIDER_AUTH): Cell("F", "polled until its lifetime ends, then expired"),
    ("ambiguous", R.READ_ONLY): Cell("-", "cannot occur"),
    ("ambiguous", R.IDEMPOTENT_WRITE): Cell("P", "probed on a timer until a resolution"),
    ("ambiguous", R.SIDE_EFFECT): Cell("A", "until a resolution"),
    ("ambiguous", R.LONG_RUNNING): Cell("P", "probed on a timer; a handle may be pasted"),
    ("ambiguous", R.PROVIDER_AUTH): Cell("-", "cannot occur"),
}  # fmt: skip
