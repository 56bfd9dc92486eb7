"""A call's rows read into the story that the timeline draws.

What the picture may say is decided here from proof alone: the end of a bar is the last proof of
life, the end of a window a written proof of death, a report or a disproof. Nothing is estimated.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dashboard.stories import Bound, Mark, Run, Story, Wait
from dashboard.templatetags.times import span
from ledger.models import Attempt, Chunk, Compaction, Delivery, Event, Fetch, ToolCall
from ledger.vocabulary import AttemptKind, CallState, Cause, Effect, spoken

S = CallState
BEFORE_AN_ATTEMPT = frozenset({S.RECORDED, S.SCHEDULED, S.BACKING_OFF})
WAITS = BEFORE_AN_ATTEMPT | {S.PARKED, S.PAUSED, S.INTERRUPTED, S.AMBIGUOUS}
ROWS_OF = (AttemptKind.RUN, AttemptKind.RESUME)
MARKS = {
    "crossed": ("crossed", "Boundary crossed"),
    "succeeded": ("written", "Result written"),
    "adopted": ("written", "Late result adopted"),
    "proved_done": ("written", "Effect proved; result written"),
    "failed": ("written", "Failure written"),
    "interrupted": ("lost", "Interrupted"),
    "fence_lost": ("lost", "Fence lost"),
    "late_result": ("late", "Late result kept as evidence"),
    "cancel_requested": ("cancel", "Cancellation requested"),
    "progress": ("beat", "Heartbeat with a new cursor"),
    "polled": ("ask", "Handle polled"),
    "probed": ("ask", "Outside asked"),
    "proven_dead": ("dead", "Attempt proven dead"),
}
"""Which events are drawn: the mark, and what it says."""
FIRED_BY = {Cause.HANG: "start_to_close", Cause.WORKER_LOST: "heartbeat"}
BEATS_MAX = 200


@dataclass(frozen=True, slots=True)
class History:
    """The rows behind one call's timeline, read once for the whole page."""

    call: ToolCall
    now: datetime
    attempts: list[Attempt]
    events: list[Event]
    beats: list[tuple[datetime, int]] = field(default_factory=list)
    reads: list[tuple[datetime, str]] = field(default_factory=list)
    cuts: list[tuple[datetime, int]] = field(default_factory=list)

    @property
    def rows(self) -> list[Attempt]:
        """The attempts with a row of their own; polls and probes are ticks."""
        return [each for each in self.attempts if each.kind in ROWS_OF]


def read(call: ToolCall, now: datetime) -> History:
    """Read what the timeline needs, in six queries."""
    attempts = list(Attempt.objects.filter(call=call).select_related("worker").order_by("fence"))
    events = list(Event.objects.filter(call=call).order_by("seq"))
    chunks = Chunk.objects.filter(attempt__call=call).order_by("-id")
    beats = [(at, fence) for at, fence in chunks.values_list("at", "attempt__fence")[:BEATS_MAX]]
    fetched = Fetch.objects.filter(call=call).values_list("first_at", "reader")[:20]
    acknowledged = Delivery.objects.filter(call=call, acknowledged_at__isnull=False)
    reads = [*fetched, *acknowledged.values_list("acknowledged_at", "consumer")[:20]]
    return History(call, now, attempts, events, sorted(beats), [*sorted(reads)], _cuts(call))


def _cuts(call: ToolCall) -> list[tuple[datetime, int]]:
    """The compactions that carried the call over, with their numbers."""
    rows = Compaction.objects.filter(session=call.session_id, unresolved__contains=[call.id])
    return list(rows.order_by("at").values_list("at", "number")[:20]) if call.session_id else []


def story_of(history: History) -> Story:
    """The story of a call."""
    call, rows = history.call, history.rows
    runs = [_run(each, history) for each in rows]
    marks = list(_marks(history))
    ends = [mark.at for mark in marks] + [run.window_until for run in runs if run.window_until]
    now = None if call.is_settled else history.now
    last = max([call.settled_at or history.now, history.events[-1].at, *ends])
    start = history.events[0].at
    end = max(last, start + timedelta(milliseconds=1))
    return Story(
        start=start, end=end, now=now, runs=runs, waits=list(_waits(history)), marks=marks,
        bounds=list(_bounds(history, runs)),
    )  # fmt: skip


def proved_until(attempt: Attempt, history: History) -> datetime:
    """The last proof of life: the renewal that its lease was counted from, or output since."""
    heartbeat = timedelta(seconds=history.call.policy.call_policy.timeouts.heartbeat_s)
    beats = [at for at, fence in history.beats if fence == attempt.fence]
    known = [attempt.claimed_at, attempt.crossed_at, attempt.lease_until - heartbeat, *beats]
    latest: datetime = max(each for each in known if each is not None)
    return min(latest, attempt.ended_at or history.now)


def _run(attempt: Attempt, history: History) -> Run:
    lost = attempt.outcome == "lost"
    overdue = attempt.ended_at is None and not attempt.lease_is_live(history.now)
    until, narrowed = _window_end(attempt, history)
    return Run(
        fence=attempt.fence,
        claimed_at=attempt.claimed_at,
        proved_until=proved_until(attempt, history),
        ended_at=attempt.ended_at,
        window_from=attempt.crossed_at,
        window_until=until,
        narrowed_by=narrowed,
        is_lost=lost or overdue,
        goes_on=attempt.outcome == "parked" and until is None,
        outcome=outcome_of(attempt, history.now),
    )


def _window_end(attempt: Attempt, history: History) -> tuple[datetime | None, str]:
    """When it was over that the effect might happen, and what says so; None while it is not."""
    if attempt.crossed_at is None:
        return None, ""
    if attempt.outcome == "parked":
        is_known = history.call.effect is not Effect.POSSIBLE
        return (history.call.settled_at or attempt.disproved_at, "") if is_known else (None, "")
    if attempt.outcome != "lost":
        return attempt.ended_at, ""
    found = [(attempt.dead_at, f"proof of death ({attempt.dead_proof})")]
    found.append((attempt.disproved_at, "a finding that it had no effect"))
    known = [(at, how) for at, how in found if at is not None]
    return min(known) if known else (None, "")


def outcome_of(attempt: Attempt, now: datetime) -> str:
    """What became of an attempt, in words."""
    if attempt.ended_at is None:
        return "running" if attempt.lease_is_live(now) else "silent: its lease has ended"
    if attempt.outcome == "lost":
        return f"lost ({spoken(attempt.cause)})"
    words = [spoken(attempt.outcome), spoken(attempt.cause)]
    return ": ".join(each for each in words if each)


def _waits(history: History) -> Iterable[Wait]:
    """Stretches between events in which nobody ran the call, each in the row it belongs to."""
    rows, call = history.rows, history.call
    ends = [*history.events[1:], None]
    for event, following in zip(history.events, ends, strict=True):
        until = following.at if following else call.settled_at or history.now
        if event.to_state in WAITS and until > event.at:
            yield Wait(str(event.to_state), event.at, until, _row_of(event, rows))


def _row_of(event: Event, rows: Sequence[Attempt]) -> int:
    """A wait for an attempt lies in that one's row, any other in the row of the last."""
    before = [each.fence for each in rows if each.claimed_at <= event.at]
    after = [each.fence for each in rows if each.claimed_at > event.at]
    last = before[-1] if before else 0
    if event.to_state in BEFORE_AN_ATTEMPT or not before:
        return after[0] if after else last + 1
    return last


def _marks(history: History) -> Iterable[Mark]:
    for event in history.events:
        if event.kind in MARKS:
            kind, title = MARKS[event.kind]
            cause = f" ({spoken(event.cause)})" if event.cause else ""
            yield Mark(kind, event.at, f"{title}{cause}, event {event.seq}",
                       _own_row(event.fence, history))  # fmt: skip
    for at, fence in history.beats:
        yield Mark("beat", at, "Heartbeat with output", _own_row(fence, history))
    for attempt in history.rows:
        renewed = proved_until(attempt, history)
        if attempt.claimed_at < renewed and renewed != attempt.ended_at:
            yield Mark("beat", renewed, "Last proof of life", attempt.fence)
    for at, number in history.cuts:
        yield Mark("cut", at, f"Compaction {number} carried the call over")
    for at, reader in history.reads:
        yield Mark("read", at, f"Read by {reader[:60]}")


def _own_row(fence: int | None, history: History) -> int:
    """The row of an attempt; a poll's or probe's is that of the run before it."""
    rows = [each.fence for each in history.rows if fence is None or each.fence <= fence]
    return rows[-1] if rows else 0


def _bounds(history: History, runs: Sequence[Run]) -> Iterable[Bound]:
    call, times = history.call, history.call.policy.call_policy.timeouts
    fired = {str(event.facts_json.get("deadline", "")) for event in history.events}
    by_fence = {each.fence: each for each in history.rows}
    for wait in _waits(history):
        if wait.kind == S.SCHEDULED:
            yield _bound("schedule_to_start", wait.start, times.schedule_to_start_s, wait.fence,
                         "schedule_to_start" in fired and wait.fence not in by_fence)  # fmt: skip
    for run in runs:
        attempt = by_fence[run.fence]
        by = _fired_by(attempt) if run.is_lost else ""
        yield _bound("start_to_close", run.claimed_at, times.start_to_close_s, run.fence,
                     by == "start_to_close")  # fmt: skip
        if run.is_lost or run.ended_at is None:
            renewed = attempt.lease_until - timedelta(seconds=times.heartbeat_s)
            yield _bound("heartbeat", renewed, times.heartbeat_s, run.fence,
                         by == "heartbeat")  # fmt: skip
    yield _bound("schedule_to_close", call.recorded_at or history.events[0].at,
                 times.schedule_to_close_s, 0, "schedule_to_close" in fired)  # fmt: skip


def _fired_by(attempt: Attempt) -> str:
    """The bound that an attempt was lost by; a worker found dead is lost before its lease ends."""
    ended = attempt.ended_at
    if attempt.cause is Cause.WORKER_LOST and ended is not None and ended < attempt.lease_until:
        return ""
    return FIRED_BY.get(attempt.cause, "")


def _bound(name: str, start: datetime, seconds: float, fence: int, fired: bool) -> Bound:
    length = timedelta(seconds=seconds)
    text = f"{seconds:g} s" if seconds < 60 else span(length)
    return Bound(name, start, start + length, fence, fired, text)
