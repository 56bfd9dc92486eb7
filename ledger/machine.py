"""The state machine, said once, as data.

Everything that knows which moves exist is derived from `TRANSITIONS` and `PAIRS`: the guard in
Python (`step`), the guard in PostgreSQL (`ledger/guards.py` publishes both tables), the
diagram in the documentation and the buttons of the console. No Django import.

An event either moves a call or repeats its state; what may happen to the effect on the way is
`effects`: `None` keeps it, a set names what it may become. The pair of state and effect after
the move must stand in `PAIRS` (R8).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ledger.errors import IllegalTransition
from ledger.vocabulary import OPEN, SETTLED, Actor, CallState, Deadline, Effect

S, A, E, D = CallState, Actor, Effect, Deadline

EVERY_STATE = frozenset(CallState)
KNOWN_EFFECTS = frozenset({E.NONE, E.NOT_BEGUN, E.HAPPENED, E.DID_NOT_HAPPEN})
ANY_EFFECT = frozenset(Effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One kind of event: where it may start and end, who may make it, what it must carry.

    `source` is empty for the first event of a call. `target` is empty where the state stays.
    `stamps` names the column of the call that takes the event's instant.
    """

    kind: str
    source: frozenset[CallState]
    target: frozenset[CallState] = frozenset()
    by: frozenset[Actor]
    needs: frozenset[str] = frozenset()
    effects: frozenset[Effect] | None = None
    stamps: str = ""

    def edges(self) -> Iterator[tuple[str, str]]:
        """Each allowed pair (from, to); from is "" for the first event."""
        sources: list[str] = [str(state) for state in sorted(self.source)] or [""]
        for source in sources:
            for target in [str(state) for state in sorted(self.target)] or [source]:
                yield source, target


def _transition(
    kind: str,
    source: set[CallState] | frozenset[CallState],
    target: set[CallState] | frozenset[CallState] = frozenset(),
    *,
    by: set[Actor],
    needs: set[str] = frozenset(),  # type: ignore[assignment]
    effects: set[Effect] | frozenset[Effect] | None = None,
    stamps: str = "",
) -> Transition:
    return Transition(
        kind=kind,
        source=frozenset(source),
        target=frozenset(target),
        by=frozenset(by),
        needs=frozenset(needs),
        effects=None if effects is None else frozenset(effects),
        stamps=stamps,
    )


TRANSITIONS: dict[str, Transition] = {
    each.kind: each
    for each in (
        # Intent
        _transition(
            "recorded",
            set(),
            {S.RECORDED},
            by={A.AGENT},
            needs={"arguments_sha256", "policy_version"},
            effects={E.NONE, E.NOT_BEGUN},
            stamps="recorded_at",
        ),
        _transition(
            "imported",
            set(),
            {S.SUCCEEDED, S.FAILED, S.INTERRUPTED},
            by={A.AGENT, A.OPERATOR},
            needs={"file_sha256", "entry"},
            effects=ANY_EFFECT,
            stamps="recorded_at",
        ),
        # A person is asked
        _transition(
            "interrupt_raised",
            {S.RECORDED, S.RUNNING, S.PARKED},
            {S.PAUSED},
            by={A.POLICY, A.WORKER, A.AGENT, A.LEDGER},
            needs={"interrupt", "phase"},
            effects=ANY_EFFECT,
        ),
        _transition(
            "interrupt_answered",
            {S.PAUSED},
            {S.SCHEDULED, S.PARKED, S.SUCCEEDED, S.FAILED, S.REJECTED, S.PAUSED},
            by={A.OPERATOR, A.AGENT, A.LEDGER},
            needs={"answer"},
            effects=ANY_EFFECT,
        ),
        _transition(
            "interrupt_expired",
            {S.PAUSED},
            {S.PARKED, S.SUCCEEDED, S.FAILED, S.PAUSED},
            by={A.WATCHDOG},
            needs={"choice"},
        ),
        # Work
        _transition(
            "scheduled",
            {S.RECORDED, S.BACKING_OFF, S.SCHEDULED},
            {S.SCHEDULED},
            by={A.LEDGER, A.RECOVERY},
            needs={"attempt"},
            stamps="published_at",
        ),
        _transition(
            "started",
            {S.SCHEDULED},
            {S.RUNNING},
            by={A.WORKER},
            needs={"worker"},
            stamps="started_at",
        ),
        _transition(
            "crossed", {S.RUNNING}, by={A.WORKER}, effects={E.POSSIBLE}, stamps="crossed_at"
        ),
        _transition("progress", {S.RUNNING, S.PARKED}, by={A.WORKER}),
        _transition("handle_stored", {S.RUNNING, S.PARKED}, by={A.WORKER}, needs={"handle_kind"}),
        _transition("parked", {S.RUNNING}, {S.PARKED}, by={A.WORKER}, needs={"handle_kind"}),
        _transition("polled", {S.PARKED}, by={A.WORKER}, needs={"worker"}),
        _transition("poll_ended", {S.PARKED}, by={A.WORKER, A.RECOVERY, A.WATCHDOG}),
        _transition("released", {S.RUNNING}, {S.BACKING_OFF}, by={A.WORKER}, needs={"grounds"}),
        _transition(
            "attempt_failed",
            {S.RUNNING, S.PARKED},
            {S.BACKING_OFF},
            by={A.WORKER, A.RECOVERY},
            needs={"cause", "grounds"},
            effects={E.NONE, E.NOT_BEGUN, E.POSSIBLE, E.DID_NOT_HAPPEN},
        ),
        # Recovery
        _transition(
            "interrupted",
            {S.RUNNING, S.PARKED, S.SCHEDULED, S.BACKING_OFF},
            {S.INTERRUPTED},
            by={A.WATCHDOG, A.WORKER, A.OPERATOR, A.RECOVERY},
            needs={"cause", "failure_point"},
        ),
        _transition(
            "resumed",
            {S.INTERRUPTED, S.AMBIGUOUS},
            {S.PARKED},
            by={A.RECOVERY, A.OPERATOR},
            needs={"grounds"},
        ),
        _transition("probed", {S.INTERRUPTED, S.AMBIGUOUS}, by={A.WORKER}, needs={"worker"}),
        _transition(
            "probe_ended",
            {S.INTERRUPTED, S.AMBIGUOUS},
            by={A.WORKER, A.WATCHDOG},
            needs={"finding"},
        ),
        _transition(
            "probe_again", {S.AMBIGUOUS}, {S.INTERRUPTED}, by={A.OPERATOR}, needs={"grounds"}
        ),
        _transition(
            "cleared_for_retry",
            {S.INTERRUPTED, S.AMBIGUOUS},
            {S.BACKING_OFF},
            by={A.RECOVERY, A.OPERATOR},
            needs={"grounds"},
            effects={E.NONE, E.NOT_BEGUN, E.POSSIBLE, E.DID_NOT_HAPPEN},
        ),
        _transition(
            "escalated",
            {S.INTERRUPTED},
            {S.AMBIGUOUS},
            by={A.RECOVERY, A.OPERATOR},
            needs={"grounds", "reason"},
        ),
        _transition(
            "restored",
            {S.RECORDED, S.SCHEDULED, S.BACKING_OFF, S.RUNNING, S.PARKED},
            {S.INTERRUPTED},
            by={A.OPERATOR},
            needs={"cause", "failure_point", "grounds"},
            effects={E.POSSIBLE},
        ),
        _transition("reminded", {S.AMBIGUOUS}, by={A.WATCHDOG}),
        # Settlement
        _transition(
            "succeeded",
            {S.RUNNING, S.PARKED},
            {S.SUCCEEDED},
            by={A.WORKER},
            effects={E.NONE, E.HAPPENED, E.DID_NOT_HAPPEN},
            stamps="finished_at",
        ),
        _transition(
            "proved_done",
            {S.INTERRUPTED, S.AMBIGUOUS},
            {S.SUCCEEDED},
            by={A.RECOVERY, A.OPERATOR},
            needs={"grounds"},
            effects={E.HAPPENED},
        ),
        _transition(
            "adopted",
            {S.SCHEDULED, S.RUNNING, S.BACKING_OFF, S.INTERRUPTED, S.AMBIGUOUS},
            {S.SUCCEEDED, S.FAILED},
            by={A.RECOVERY, A.OPERATOR},
            needs={"grounds", "evidence"},
            effects=KNOWN_EFFECTS,
        ),
        _transition(
            "failed",
            {S.RUNNING, S.PARKED, S.BACKING_OFF, S.INTERRUPTED, S.AMBIGUOUS},
            {S.FAILED},
            by={A.WORKER, A.RECOVERY, A.OPERATOR},
            needs={"cause"},
            effects=KNOWN_EFFECTS,
            stamps="finished_at",
        ),
        _transition(
            "expired",
            {S.RECORDED, S.PAUSED, S.SCHEDULED, S.BACKING_OFF},
            {S.EXPIRED},
            by={A.WATCHDOG, A.RECOVERY},
            needs={"deadline"},
        ),
        _transition(
            "rejected",
            {S.RECORDED, S.PAUSED},
            {S.REJECTED},
            by={A.POLICY, A.OPERATOR},
            needs={"reason"},
        ),
        _transition(
            "cancelled",
            {S.RECORDED, S.PAUSED, S.SCHEDULED, S.BACKING_OFF},
            {S.CANCELLED},
            by={A.AGENT, A.OPERATOR, A.LEDGER, A.RECOVERY},
        ),
        _transition("abandoned", {S.AMBIGUOUS}, {S.ABANDONED}, by={A.OPERATOR}, needs={"grounds"}),
        # Facts that leave the state alone
        _transition(
            "cancel_requested",
            OPEN,
            by={A.AGENT, A.OPERATOR},
        ),
        _transition("fence_lost", OPEN, by={A.WATCHDOG, A.RECOVERY}, needs={"cause"}),
        _transition(
            "proven_dead", EVERY_STATE, by={A.WATCHDOG, A.WORKER, A.OPERATOR}, needs={"proof"}
        ),
        _transition("late_result", EVERY_STATE, by={A.WORKER, A.AGENT}, needs={"evidence"}),
        _transition("handed_off", OPEN, by={A.AGENT}, needs={"hand_off", "to_session"}),
        _transition("clock_jump", OPEN, by={A.WATCHDOG}, needs={"jumped_s"}),
        _transition("step_failed", OPEN, by={A.WATCHDOG}, needs={"error"}),
        # What people add: evidence and decisions, which move nothing by themselves
        _transition("evidence_added", EVERY_STATE, by={A.OPERATOR}, needs={"evidence"}),
        _transition(
            "decided", {S.INTERRUPTED, S.AMBIGUOUS}, by={A.OPERATOR}, needs={"resolution", "answer"}
        ),
        _transition(
            "taken_back", {S.INTERRUPTED, S.AMBIGUOUS}, by={A.OPERATOR}, needs={"resolution"}
        ),
        _transition("corrected", SETTLED, by={A.OPERATOR}, needs={"resolution", "answer"}),
        _transition("budget_granted", OPEN, by={A.OPERATOR}, needs={"grounds", "attempts"}),
    )
}

SETTLING = frozenset(
    each.kind for each in TRANSITIONS.values() if each.target & SETTLED and each.source
) | {"imported"}

_ANY = frozenset(Effect)
PAIRS: dict[CallState, frozenset[Effect]] = {
    S.RECORDED: frozenset({E.NONE, E.NOT_BEGUN}),
    S.PAUSED: _ANY,
    S.SCHEDULED: frozenset({E.NONE, E.NOT_BEGUN, E.POSSIBLE, E.DID_NOT_HAPPEN}),
    S.BACKING_OFF: frozenset({E.NONE, E.NOT_BEGUN, E.POSSIBLE, E.DID_NOT_HAPPEN}),
    S.RUNNING: frozenset({E.NONE, E.NOT_BEGUN, E.POSSIBLE, E.DID_NOT_HAPPEN}),
    S.INTERRUPTED: frozenset({E.NONE, E.NOT_BEGUN, E.POSSIBLE, E.DID_NOT_HAPPEN}),
    S.PARKED: frozenset({E.NONE, E.POSSIBLE}),
    S.AMBIGUOUS: frozenset({E.POSSIBLE}),
    S.SUCCEEDED: frozenset({E.NONE, E.HAPPENED, E.DID_NOT_HAPPEN}),
    S.FAILED: KNOWN_EFFECTS,
    S.REJECTED: frozenset({E.NONE, E.NOT_BEGUN}),
    S.CANCELLED: frozenset({E.NONE, E.NOT_BEGUN, E.DID_NOT_HAPPEN}),
    S.EXPIRED: frozenset({E.NONE, E.NOT_BEGUN, E.POSSIBLE, E.DID_NOT_HAPPEN}),
    S.ABANDONED: frozenset({E.POSSIBLE}),
}
"""Which effects a state allows (semantics, section 1); `pair_is_allowed` adds the class."""

ONLY_UNDER = {
    S.SCHEDULED: frozenset({"idempotent_write", "provider_auth", "long_running"}),
    S.BACKING_OFF: frozenset({"idempotent_write", "provider_auth", "long_running"}),
    S.EXPIRED: frozenset({"provider_auth"}),
}
"""States in which `possible` is allowed for these recovery classes only.

A repeat is safe there: under the same key, as a fresh flow, or as a start whose key makes a
second one find the first (`repeat_start`).
"""

TIMERS: dict[CallState, frozenset[Deadline]] = {
    S.RECORDED: frozenset({D.SCHEDULE_TO_CLOSE}),
    S.PAUSED: frozenset({D.INTERRUPT_EXPIRY}),
    S.SCHEDULED: frozenset({D.SCHEDULE_TO_START, D.SCHEDULE_TO_CLOSE, D.NEXT_STEP}),
    S.RUNNING: frozenset({D.START_TO_CLOSE, D.HEARTBEAT, D.SCHEDULE_TO_CLOSE, D.NEXT_STEP}),
    S.PARKED: frozenset({D.NEXT_POLL, D.HEARTBEAT, D.SCHEDULE_TO_CLOSE}),
    S.BACKING_OFF: frozenset({D.BACKOFF, D.SCHEDULE_TO_CLOSE, D.NEXT_STEP}),
    S.INTERRUPTED: frozenset({D.NEXT_STEP, D.HEARTBEAT, D.RECOVERY_WINDOW, D.SCHEDULE_TO_CLOSE}),
    S.AMBIGUOUS: frozenset({D.REVIEW, D.NEXT_STEP, D.HEARTBEAT}),
} | {state: frozenset() for state in SETTLED}
"""Which deadlines may be armed in a state; entering it disarms every other, and `next_step`.

Before the boundary of a newer attempt, `next_step` is armed by a late result alone.
"""


def pair_is_allowed(state: CallState, effect: Effect, recovery_class: str) -> bool:
    """Whether a call of this class may stand in this state with this effect."""
    if (recovery_class == "read_only") != (effect is Effect.NONE):
        return False
    if effect is Effect.POSSIBLE and state in ONLY_UNDER:
        return recovery_class in ONLY_UNDER[state]
    return effect in PAIRS[state]


def step(
    kind: str, *, source: CallState | None, target: CallState | None, by: Actor
) -> tuple[Transition, CallState]:
    """Return the transition and the state it leads to.

    `target` may be None where the kind leads to one state only, or leaves it alone.
    Raises IllegalTransition where no such edge exists, or `by` may not make it.
    """
    transition = TRANSITIONS.get(kind)
    if transition is None or (source not in transition.source if source else transition.source):
        raise IllegalTransition(kind=kind, source=source or "nothing", target=target, by=by)
    if target is None:
        target = next(iter(transition.target)) if len(transition.target) == 1 else source
    legal = target in transition.target if transition.target else target is source
    if target is None or not legal or by not in transition.by:
        raise IllegalTransition(kind=kind, source=source or "nothing", target=target, by=by)
    return transition, target
