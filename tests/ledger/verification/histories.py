"""Histories that several tests begin from, walked by the real verbs."""

from ledger.models import ToolCall
from ledger.vocabulary import Cause, Deadline, Meaning, ProbeFinding
from tests import builders
from tests.cast import Acme

AUTHORITATIVE = {"authoritative": True, "interval_s": 1}


def tried_again(acme: Acme, *, recovery_class: str = "side_effect") -> ToolCall:
    """Running its second attempt; the first crossed and was refused."""
    call = builders.a_call(acme, in_state="running", recovery_class=recovery_class, crossed=True)
    builders.report(call, Cause.RATE_LIMITED, Meaning.REFUSED)
    return _again(call)


def repeated_under_its_key(acme: Acme) -> ToolCall:
    """A write running its second attempt; the first crossed and what followed is unknown."""
    call = builders.a_call(
        acme, in_state="running", recovery_class="idempotent_write", crossed=True
    )
    builders.report(call, Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    return _again(call)


def not_begun_and_again(acme: Acme, *, recovery_class: str) -> ToolCall:
    """Running its second attempt; the first never crossed."""
    call = builders.a_call(acme, in_state="backing_off", recovery_class=recovery_class)
    return _again(call)


def _again(call: ToolCall) -> ToolCall:
    builders.past(call, Deadline.BACKOFF)
    builders.fire()
    builders.claimed(call)
    return builders.fresh(call)


def denied_by_a_probe(acme: Acme) -> ToolCall:
    """Backing off: a probe of the dead attempt found no effect."""
    call = builders.a_call(
        acme,
        in_state="interrupted",
        policy={"probe": AUTHORITATIVE, "retry": {"attempts": 3}},
    )
    builders.unlock_denial(call)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    builders.probe(call, ProbeFinding.DID_NOT_HAPPEN)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    return builders.fresh(call)
