"""Twins: the same call asked for again, answered from the ledger or held (semantics, section 10).

`RULES` is the table: what the earlier call is, and what then becomes of the new one. A twin is
recorded, since its tool call id needs an answer, and never has an attempt: its outcome is the
other's. A twin of a twin does not exist; both refer to the one that ran.

Pure but for the counting at the end; what stands before a submit is read by `ledger/repeats.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, Sum

from ledger.models import ToolCall
from ledger.policies import CallPolicy
from ledger.vocabulary import SETTLED, CallState, Effect, HoldReason, RecoveryClass


class Standing(StrEnum):
    """What the earlier call is, in the words of the table."""

    OPEN = "open"
    UNRESOLVED = "unresolved"
    ABANDONED = "abandoned"
    SAME_TURN = "same_turn"
    """Settled with a result, or after its effect, in this turn."""
    KEPT = "kept"
    """The same, kept after an interruption of its turn and not delivered yet."""
    EARLIER_TURN = "earlier_turn"
    NO_EFFECT = "no_effect"
    """Settled without effect: only a caller's key still finds it."""


RUNS = None
WRITES = RecoveryClass.IDEMPOTENT_WRITE
RULES: dict[Standing, dict[str, HoldReason | None]] = {
    Standing.OPEN: {"read": HoldReason.TWIN_OPEN, "other": HoldReason.TWIN_OPEN},
    Standing.UNRESOLVED: {"read": RUNS, "other": HoldReason.TWIN_UNRESOLVED},
    Standing.ABANDONED: {"read": RUNS, "other": HoldReason.TWIN_ABANDONED},
    Standing.SAME_TURN: {"read": HoldReason.TWIN_DONE, "other": HoldReason.TWIN_DONE},
    Standing.KEPT: {"read": HoldReason.TWIN_DONE, "other": HoldReason.TWIN_DONE},
    Standing.EARLIER_TURN: {"read": RUNS, "other": HoldReason.TWIN_DONE},
    Standing.NO_EFFECT: {"read": RUNS, "other": RUNS},
}
"""By what the earlier call is and whether the new one only reads. None: it runs."""

DONE = (Standing.SAME_TURN, Standing.KEPT, Standing.EARLIER_TURN)
ASKED_FIRST = frozenset({"purchase", "delete"})
"""Effect kinds whose intended repeat a person must approve."""


class Wish(NamedTuple):
    """What one submit is looked up by. `repeats` is the call that its caller's key names."""

    workspace_id: UUID
    session_id: UUID | None
    turn_id: UUID | None
    tool: str
    arguments_sha256: str
    template_key: str | None
    repeats: UUID | None = None
    repeat_intended: bool = False
    effect_kinds: frozenset[str] = frozenset()


class Earlier(NamedTuple):
    """The call that a wish may be a twin of."""

    id: UUID
    state: CallState
    effect: Effect
    session_id: UUID | None
    turn_id: UUID | None
    arguments_sha256: str
    has_result: bool = False
    age_s: float | None = None
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """Why a new call does not run, and the call that it refers to."""

    reason: HoldReason
    other: Earlier


def ruling(wish: Wish, earlier: Earlier | None, policy: CallPolicy) -> Ruling | None:
    """Judge one submit by the table. None: it runs."""
    if earlier is None:
        return None
    if _is_another_write(wish, earlier, policy):
        held = earlier.state not in SETTLED
        return Ruling(HoldReason.SAME_TARGET, earlier) if held else None
    standing = standing_of(wish, earlier)
    reason = _reason(wish, earlier, standing, policy)
    return None if reason is None else Ruling(reason, earlier)


def _is_another_write(wish: Wish, earlier: Earlier, policy: CallPolicy) -> bool:
    """A write under the same key with other arguments: to be answered with that one's result
    would lose it, and to overtake that one would let a repeat of it undo this one."""
    return policy.recovery_class is WRITES and wish.arguments_sha256 != earlier.arguments_sha256


def standing_of(wish: Wish, earlier: Earlier) -> Standing:
    """What the earlier call is to this wish."""
    if earlier.state in (CallState.INTERRUPTED, CallState.AMBIGUOUS):
        return Standing.UNRESOLVED
    if earlier.state not in SETTLED:
        return Standing.OPEN
    if earlier.state is CallState.ABANDONED:
        return Standing.ABANDONED
    if earlier.state is not CallState.SUCCEEDED and earlier.effect is not Effect.HAPPENED:
        return Standing.NO_EFFECT
    if earlier.is_kept:
        return Standing.KEPT
    place = (wish.session_id, wish.turn_id)
    here = wish.session_id is not None and place == (earlier.session_id, earlier.turn_id)
    return Standing.SAME_TURN if here else Standing.EARLIER_TURN


def _reason(
    wish: Wish, earlier: Earlier, standing: Standing, policy: CallPolicy
) -> HoldReason | None:
    if wish.repeats is not None:
        return _of_one_key(standing)
    if policy.recovery_class is RecoveryClass.READ_ONLY:
        stale = standing is Standing.SAME_TURN and not _is_fresh(earlier, policy)
        return RUNS if stale else RULES[standing]["read"]
    if standing in DONE and wish.repeat_intended:
        return HoldReason.REPEAT_INTENDED if wish.effect_kinds & ASKED_FIRST else RUNS
    if standing is Standing.EARLIER_TURN and _runs_again(wish, policy):
        return RUNS
    return RULES[standing]["other"]


def _is_fresh(earlier: Earlier, policy: CallPolicy) -> bool:
    """Whether a read's result may be given again: a state may be asked for twice in one turn."""
    age_s = earlier.age_s
    return age_s is not None and policy.replay_reads_s > 0 and age_s <= policy.replay_reads_s


def _of_one_key(standing: Standing) -> HoldReason:
    """The caller's own key says that it is one intent: whatever came of it is the answer."""
    return RULES[standing]["other"] or HoldReason.TWIN_DONE


def _runs_again(wish: Wish, policy: CallPolicy) -> bool:
    """After its turn an intent lives on in a key only; a keyed write may always be made again."""
    return wish.template_key is None or policy.recovery_class is WRITES


# Counting


class Prevented(NamedTuple):
    """Model retries that the ledger answered, and the tokens of the prompts that they spared."""

    repeats: int
    tokens: int


def prevented(
    *,
    workspace_id: UUID,
    session_id: UUID | None = None,
    tool: str = "",
    since: datetime | None = None,
) -> Prevented:
    """Count the repeats answered from the ledger (R47), in a session, of a tool, since an instant.

    `tokens` sums what agents reported as prompt size; calls without a report add nothing.
    """
    rows = ToolCall.objects.filter(workspace=workspace_id, twin_of__isnull=False)
    if session_id is not None:
        rows = rows.filter(session=session_id)
    if tool:
        rows = rows.filter(tool=tool)
    if since is not None:
        rows = rows.filter(recorded_at__gte=since)
    counted = rows.aggregate(repeats=Count("id"), tokens=Sum("prompt_tokens"))
    return Prevented(counted["repeats"], counted["tokens"] or 0)


def prevented_in(session_ids: Iterable[UUID]) -> dict[UUID, Prevented]:
    """The same of many sessions, in one statement; one without a repeat is not there."""
    rows = ToolCall.objects.filter(session__in=list(session_ids), twin_of__isnull=False)
    counted = rows.order_by().values_list("session").annotate(Count("id"), Sum("prompt_tokens"))
    return {session_id: Prevented(repeats, tokens or 0) for session_id, repeats, tokens in counted}
