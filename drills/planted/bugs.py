"""What each planted bug does to a program: functions replaced by name, before the program begins.

Never imported by the product, and never by anything but `bugged`, which asks the drill's guard.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4


def no_self_fence() -> None:
    """The launcher's timer is never armed: a stopped attempt lives on past its lease."""
    from executors import fence

    fence.Timer.arm = lambda self, at_s: None  # type: ignore[method-assign]


def settle_without_fence() -> None:
    """A report settles whoever holds the call by now."""
    from ledger import settlements

    for condition in (
        " AND c.fence = a.fence",
        " AND a.ended_at IS NULL AND a.fence_lost_at IS NULL",
    ):
        if condition not in settlements.END_HELD:
            raise LookupError(f"Settling does not ask for{condition} any more: plant it anew.")
        settlements.END_HELD = settlements.END_HELD.replace(condition, "")


def cross_without_lease() -> None:
    """A crossing asks neither for the fence nor for the lease."""
    from ledger import attempts
    from ledger.errors import FenceLost
    from ledger.models import Attempt, ToolCall

    held, cross = attempts.hold, attempts.cross

    def loose(*, call_id: Any, fence: int) -> Any:
        try:
            return held(call_id=call_id, fence=fence)
        except FenceLost:
            call = ToolCall.objects.locked(call_id)
            return attempts.Held(call, Attempt.objects.get(call=call, fence=fence), 60.0)

    def careless(**words: Any) -> float:
        attempts.hold = loose
        try:
            return cross(**words)
        finally:
            attempts.hold = held

    attempts.cross = careless


def deny_the_living() -> None:
    """A denial is taken without proof that its attempt is dead."""
    from recovery import rulings

    rulings.lock_of = lambda facts: None


def no_ringing_again() -> None:
    """What no worker was woken for is never rung again."""
    from recovery import watchdog

    watchdog.ring_again = lambda limit=0: 0


def no_watchdog() -> None:
    """The watchdog runs and does nothing."""
    from recovery import watchdog

    watchdog.sweep = lambda limit=0: 0


def repeat_of_a_crossed_side_effect() -> None:
    """A side effect is repeated like a write, although nothing makes a second one impossible."""
    from recovery.matrix import RULES, R

    RULES[R.SIDE_EFFECT] = dataclasses.replace(
        RULES[R.SIDE_EFFECT], repeats_when_possible=True, repeats_not_begun=None
    )


def time_over_means_failed() -> None:
    """Who was silent until start-to-close is called failed, without effect."""
    from ledger.vocabulary import Cause, Effect
    from recovery import decisions
    from recovery.decisions import Act, Decision

    after_report = decisions.after_report

    def guessing(case: Any, means: Any, *, now: Any) -> Any:
        if case.cause is Cause.HANG and case.effect is Effect.POSSIBLE:
            return Decision(
                act=Act.FAIL, rule="guess", effect=Effect.DID_NOT_HAPPEN, grounds="It was silent."
            )
        return after_report(case, means, now=now)

    decisions.after_report = guessing


def late_results_dropped() -> None:
    """What comes after the fence was lost is thrown away."""
    from ledger import settlements

    settlements.keep_late = lambda *words, **more: None


def new_key_for_each_attempt() -> None:
    """Every attempt draws a key of its own, so the outside cannot know a repeat."""
    from ledger import claims

    claimed = claims._claimed

    def renamed(*words: Any) -> Any:
        return dataclasses.replace(claimed(*words), effect_key=uuid4().hex)

    claims._claimed = renamed  # type: ignore[assignment]


def key_taken_for_other_arguments() -> None:
    """The same key with other arguments is answered with the earlier call."""
    from ledger import submits
    from ledger.errors import KeyReused
    from ledger.models import ToolCall
    from ledger.submits import Recorded

    record = submits.record

    def careless(wanted: Any) -> Any:
        answers = record(wanted)
        return [
            _earlier(submit) if isinstance(answer, KeyReused) else answer
            for submit, answer in zip(wanted, answers, strict=True)
        ]

    def _earlier(submit: Any) -> Any:
        call = ToolCall.objects.get(
            agent_id=submit.agent_id, idempotency_key=submit.idempotency_key
        )
        return Recorded(call.id, True, call.state)

    submits.record = careless  # type: ignore[assignment]


def change_without_its_event() -> None:
    """A crossing changes the call and writes no event."""
    from ledger import journal

    insert = journal._insert_events

    def forgetful(made: Any) -> None:
        kept = [each for each in made if each.move.kind != "crossed"]
        if kept:
            insert(kept)

    journal._insert_events = forgetful


def unknown_commit_taken_for_done() -> None:
    """The answer to a crossing's commit is lost, and the tool is told to go on."""
    from django.db import DatabaseError, InterfaceError, connection

    from ledger import attempts

    cross = attempts.cross

    def hoping(**words: Any) -> float:
        try:
            return cross(**words)
        except (DatabaseError, InterfaceError):
            connection.close()
            return 60.0

    attempts.cross = hoping


def negative_probe_believed_at_once() -> None:
    """That the outside has nothing yet is believed of an attempt that may still act."""
    from recovery import snapshots

    snapshots._counts = lambda *words, **more: True


def carry_over_not_made_anew() -> None:
    """A compaction carries over what was true when it was prepared."""
    from ledger import carry_over

    made: dict[Any, Any] = {}
    lines = carry_over.lines

    def remembered(calls: Any) -> Any:
        return [
            made.setdefault(call.id, line) for call, line in zip(calls, lines(calls), strict=True)
        ]

    carry_over.lines = remembered


def hand_off_drops_the_unresolved() -> None:
    """A hand-off takes the calls of its set but the last."""
    from ledger import unresolved

    held = unresolved.held
    unresolved.held = lambda session_id: held(session_id)[:-1]


BUGS: Mapping[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        no_self_fence,
        settle_without_fence,
        cross_without_lease,
        deny_the_living,
        no_ringing_again,
        no_watchdog,
        repeat_of_a_crossed_side_effect,
        time_over_means_failed,
        late_results_dropped,
        new_key_for_each_attempt,
        key_taken_for_other_arguments,
        change_without_its_event,
        unknown_commit_taken_for_done,
        negative_probe_believed_at_once,
        carry_over_not_made_anew,
        hand_off_drops_the_unresolved,
    )
}
