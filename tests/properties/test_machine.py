"""Any sequence of verbs, deaths and passing time keeps what the ledger promises.

Real verbs, real PostgreSQL, real commits; beside them `world` keeps what really happened outside
under every attempt. Any verb may be broken off at any statement: its client dies there, or only
its line is cut. Refusals of the ledger are answers; anything else that is raised is a finding.

`CLEARHOUSE_TEST_HISTORIES` sets how many histories are tried, drawn at random, for a long run;
without it they are few and the same each time.
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, InterfaceError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from ledger import attempts, calls, claims, handles, sessions, settlements, submits, workers
from ledger.errors import FenceLost, KeyReused, LedgerError, QueueFull, TurnClosed
from ledger.models import Attempt, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.submits import Recorded
from ledger.verification import verify
from ledger.vocabulary import Cause, FenceKind, Meaning, ProbeFinding
from ledger.workers import Holder
from recovery import reports, watchdog
from recovery.models import Incident
from tests import builders, conftest, passing
from tests.cast import found_acme
from tests.lines import Died, Line, mortal, until_gone, used
from tests.properties.verbs import CLASSES
from tests.properties.world import Story, Try, World

HISTORIES = int(os.environ.get("CLEARHOUSE_TEST_HISTORIES", "0"))
UNKNOWN = (Cause.HANG, Cause.CONNECTION_LOST, Cause.SERVER_ERROR, Cause.RESOURCE_KILLED)
REFUSED = (Cause.RATE_LIMITED, Cause.VALIDATION, Cause.AUTH)
AWAY = (DatabaseError, InterfaceError)
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"probe": {"authoritative": True, "interval_s": 1}, "tool_error_means": "no_effect"},
    {"probe": {}, "retries_tool_errors": True},
)


@dataclass(frozen=True)
class Break:
    """Where a verb is broken off: at which statement, done by the server or not, who survives."""

    statement: int
    answered: bool
    lives: bool


picks = st.integers(0, 1_000)
breaks = st.one_of(
    st.none(), st.none(), st.builds(Break, st.integers(1, 12), st.booleans(), st.booleans())
)


class Unheard(Exception):
    """The client is gone, or its answer is: what was committed, only the ledger knows."""


class History(RuleBasedStateMachine):
    """One workspace, three tools of each class, two workers, and what befalls them."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        conftest._forget()
        self.acme = found_acme()
        self.line = Line(Path(tempfile.mkdtemp(dir=self.folder)))
        self.tools = [
            builders.a_tool(self.acme, recovery_class=each, **variant)
            for each in CLASSES
            for variant in VARIANTS
        ]
        self.session = builders.a_session(self.acme)
        self.turn = builders.a_turn(self.session)
        self.world = World()
        self.names: dict[tuple[Any, ...], UUID] = {}
        self.workers: list[tuple[BaseDatabaseWrapper, Holder]] = []
        for kind in (FenceKind.KERNEL, FenceKind.NONE):
            self._hire(kind)

    def teardown(self) -> None:
        try:
            assert [str(v) for v in verify(liveness=False)] == []
            passing.until_quiet()
            assert [str(v) for v in verify() if v.call_id in self._not_ambiguous()] == []
            self._everything_has_an_owner()
            self.the_ledger_says_what_is_true()
        finally:
            for wrapper, _ in self.workers:
                wrapper.close()
            self.line.__exit__()
            conftest._clear()

    def _not_ambiguous(self) -> set[UUID]:
        return set(ToolCall.objects.exclude(state="ambiguous").values_list("id", flat=True))

    def _everything_has_an_owner(self) -> None:
        for call in ToolCall.objects.open():
            assert (call.state, call.effect) == ("ambiguous", "possible")
            assert call.review_at is not None
            assert Incident.objects.filter(call=call, closed_at=None).count() == 1

    # How a verb is run

    def _do(self, verb: Callable[[], Any], broken: Break | None) -> Any:
        """Run a verb as its client would; Unheard where nobody is left to hear the answer."""
        if broken is None:
            return verb()
        client = self.line.connect()
        pid = self.line.pid
        self.line.cut(broken.statement, answered=broken.answered)
        try:
            with used(client if broken.lives else mortal(client)):
                return verb()
        except (Died, *AWAY) as error:
            raise Unheard from error
        finally:
            client.close()
            until_gone(pid)
            self.line.fate = None

    def _tell(self, one: Try, verb: Callable[[], Any], broken: Break | None = None) -> bool:
        """Let an attempt use a verb of its own; whether it heard that this was done."""
        fresh = one.said == ""
        try:
            self._do(verb, broken)
        except Unheard:
            self._reread(one)
            return False
        except FenceLost:
            return False
        except LedgerError:
            assert not (fresh and self.world.is_stale(one)), "a lost fence was told otherwise"
            return False
        assert not (fresh and self.world.is_stale(one)), "a lost fence was obeyed"
        return True

    def _reread(self, one: Try) -> None:
        """What was committed before the break, as the rows tell it; the tool itself is gone."""
        row = Attempt.objects.get(id=one.claim.attempt_id)
        if row.crossed_at is not None and not one.crossed:
            self.world.crosses(one)
            one.said = "died"
        if row.outcome not in ("", "lost") and not one.said:
            one.said = row.outcome

    def _pick(self, pick: int, *kinds: str) -> Try | None:
        """One of the attempts ever made, current or lost; the newest half of the time."""
        some = [each for each in self.world.tries() if each.claim.kind in kinds and not each.said]
        if not some:
            return None
        return some[-1] if pick % 2 else some[pick // 2 % len(some)]

    # What agents do

    @initialize(tools=st.lists(st.integers(0, 14), min_size=2, max_size=3))
    def begin(self, tools: list[int]) -> None:
        for each in tools:
            self._submit(each, {}, None)
        self.claim(0, crossing=True, broken=None)

    @rule(tool=st.integers(0, 14), broken=breaks)
    def submit(self, tool: int, broken: Break | None) -> None:
        self._submit(tool, {}, broken)

    @rule(tool=st.integers(0, 14), key=st.sampled_from(["k1", "k2"]), broken=breaks)
    def submit_under_a_key(self, tool: int, key: str, broken: Break | None) -> None:
        self._submit(tool, {"idempotency_key": key}, broken)

    @rule(tool=st.integers(0, 14), position=st.integers(0, 1), broken=breaks)
    def submit_in_a_turn(self, tool: int, position: int, broken: Break | None) -> None:
        place = {"tool_call_id": "toolu_1", "position": position}
        ids = {"session_id": self.session.id, "turn_id": self.turn.id}
        self._submit(tool, {**place, **ids}, broken)

    def _submit(self, number: int, fields: dict[str, Any], broken: Break | None) -> None:
        tool = self.tools[number]
        submit = builders.a_submit(self.acme, tool, **fields)
        earlier = self.names.get(submit.name) if submit.name else None
        try:
            answer = self._do(lambda: submits.record([submit])[0], broken)
        except Unheard:
            # An agent asks again with the same submit, and is told the same (R7).
            answer = submits.record([submit])[0]
        if isinstance(answer, Recorded):
            assert earlier in (None, answer.call_id)
            assert earlier is None or self._tool_of(earlier) == tool.name
            self.names[submit.name or (answer.call_id,)] = answer.call_id
            self.world.stories.setdefault(answer.call_id, Story(CLASSES[number // len(VARIANTS)]))
            return
        if isinstance(answer, KeyReused):
            assert earlier is not None
            assert self._tool_of(earlier) != tool.name
            return
        assert isinstance(answer, QueueFull | TurnClosed)

    @staticmethod
    def _tool_of(call_id: UUID) -> str:
        return ToolCall.objects.get(id=call_id).tool

    @rule()
    def close_the_turn(self) -> None:
        self.turn = sessions.close_turn(turn=self.turn, closed_as="ended")

    @rule()
    def open_a_turn(self) -> None:
        if self.turn.closed_at is not None:
            self.turn = builders.a_turn(self.session)

    @rule(pick=picks, broken=breaks)
    def cancel(self, pick: int, broken: Break | None) -> None:
        ids = sorted(self.world.stories)
        owner = {"workspace_id": self.acme.workspace.id, "agent_id": self.acme.ada.id}
        try:
            self._do(lambda: calls.cancel(**owner, call_id=ids[pick % len(ids)]), broken)
        except (LedgerError, Unheard):
            return

    # What workers do

    @rule(which=st.integers(0, 1), crossing=st.booleans(), broken=breaks)
    def claim(self, which: int, crossing: bool, broken: Break | None) -> None:
        """Win what is due; most tools cross as they begin."""
        for queue in builders.ALL_QUEUES:
            for one in self._claim(queue, which, broken):
                if crossing:
                    self._cross(one, None)

    def _claim(self, queue: str, which: int, broken: Break | None) -> list[Try]:
        holder = self.workers[which][1]
        try:
            won = self._do(lambda: claims.claim(queue=queue, holder=holder, limit=3), broken)
        except Unheard:
            for call in ToolCall.objects.open():
                self.world.stories[call.id].newest = call.fence
            return []
        return [self.world.won(each) for each in won]

    @rule(pick=picks, broken=breaks)
    def cross(self, pick: int, broken: Break | None) -> None:
        if one := self._pick(pick, "run"):
            self._cross(one, broken)

    def _cross(self, one: Try, broken: Break | None) -> None:
        claim = one.claim
        if not one.is_run or claim.policy.recovery_class == "read_only":
            return
        was = one.crossed
        verb = lambda: attempts.cross(call_id=claim.call_id, fence=claim.fence)  # noqa: E731
        if self._tell(one, verb, broken) and not was:
            self.world.crosses(one)

    @rule(pick=picks)
    def act(self, pick: int) -> None:
        """A tool that crossed changes the outside: also a lost one, until it is proven dead."""
        able = [each for each in self.world.tries() if each.may_act]
        if able:
            self._act(able[pick % len(able)])

    def _act(self, one: Try) -> None:
        over = Attempt.objects.filter(id=one.claim.attempt_id, unlocks_at__lte=ClockTimestamp())
        if one.may_act and not over.exists():
            one.acted = True

    @rule(pick=picks, cursor=st.sampled_from([None, 1, 2]), broken=breaks)
    def heartbeat(self, pick: int, cursor: int | None, broken: Break | None) -> None:
        if one := self._pick(pick, "run", "poll", "probe"):
            held = {"call_id": one.claim.call_id, "fence": one.claim.fence}
            self._tell(one, lambda: attempts.heartbeat(**held, cursor=cursor), broken)

    @rule(pick=picks, acts=st.booleans(), n=st.integers(0, 1), broken=breaks)
    def succeed(self, pick: int, acts: bool, n: int, broken: Break | None) -> None:
        """A success, early or late: having acted, or saying that nothing was to be done."""
        one = self._pick(pick, "run", "poll")
        if one is None:
            return
        worked = one if one.is_run else self.world.story_of(one.claim).last_run(one.claim.fence)
        if worked is not None and (acts or not one.is_run):
            self._act(worked)
        if worked is None or (not one.is_run and worked.crossed and not worked.acted):
            return  # its work cannot be done any more, so nobody could see it done
        settlement = builders.settlement(
            one.claim, {"n": n}, changed_nothing=one.is_run and one.crossed and not one.acted
        )
        if self._tell(one, lambda: self._settle(settlement), broken) or not one.said:
            one.said = "settled"

    @staticmethod
    def _settle(settlement: settlements.Settlement) -> None:
        answer = settlements.settle([settlement])[0]
        if answer is not None:
            raise answer

    @rule(pick=picks, cause=st.sampled_from(UNKNOWN), broken=breaks)
    def report_the_unknown(self, pick: int, cause: Cause, broken: Break | None) -> None:
        if one := self._pick(pick, "run", "poll"):
            self._end(one, cause, Meaning.UNKNOWN, "unknown", broken)

    @rule(pick=picks, cause=st.sampled_from(REFUSED), broken=breaks)
    def report_a_refusal(self, pick: int, cause: Cause, broken: Break | None) -> None:
        """Only who did not act can have been refused; a refused job never acts."""
        one = self._pick(pick, "run", "poll")
        worked = one and (one if one.is_run else self._worked(one))
        if one and worked and not worked.acted:
            worked.said = worked.said and "refused"
            worked.denied = self._end(one, cause, Meaning.REFUSED, "refused", broken)

    @rule(pick=picks, broken=breaks)
    def report_that_nothing_began(self, pick: int, broken: Break | None) -> None:
        one = self._pick(pick, "run")
        if one and not one.acted:
            cause = Cause.CONNECT_FAILED
            one.denied = self._end(one, cause, Meaning.NOT_BEGUN, "not begun", broken)

    @rule(pick=picks, broken=breaks)
    def report_a_tools_error(self, pick: int, broken: Break | None) -> None:
        """A tool whose errors mean "no effect" tells them only where that is so."""
        one = self._pick(pick, "run", "poll")
        worked = one and (one if one.is_run else self._worked(one))
        if one is None or worked is None:
            return
        denies = one.claim.policy.tool_error_means == "no_effect"
        if denies and worked.acted:
            return
        if denies:
            worked.said = worked.said and "error"
        heard = self._end(one, Cause.TOOL_ERROR, Meaning.KNOWN, "error", broken)
        worked.denied = worked.denied or (heard and denies)

    def _worked(self, poll: Try) -> Try | None:
        return self.world.story_of(poll.claim).last_run(poll.claim.fence)

    @rule(pick=picks, broken=breaks)
    def lose_a_handle(self, pick: int, broken: Break | None) -> None:
        if one := self._pick(pick, "poll"):
            self._end(one, Cause.VANISHED, Meaning.UNKNOWN, "unknown", broken)

    def _end(
        self, one: Try, cause: Cause, means: Meaning, said: str, broken: Break | None
    ) -> bool:
        heard = self._tell(
            one, lambda: reports.ended(claim=one.claim, cause=cause, means=means), broken
        )
        row = Attempt.objects.get(id=one.claim.attempt_id)
        one.said = said
        return heard or row.outcome == "ended"

    @rule(pick=picks, broken=breaks)
    def park(self, pick: int, broken: Break | None) -> None:
        one = self._pick(pick, "run", "poll")
        if one is None:
            return
        if one.is_run and not one.crossed and one.claim.policy.recovery_class != "read_only":
            return
        handle = handles.HandleToStore(value=f"job-{one.claim.call_id}")
        held = {"call_id": one.claim.call_id, "fence": one.claim.fence}
        self._tell(one, lambda: handles.park(**held, handle=handle), broken)
        one.said = "parked"

    @rule(pick=picks, broken=breaks)
    def give_back(self, pick: int, broken: Break | None) -> None:
        one = self._pick(pick, "run")
        if one and not one.crossed:
            held = {"call_id": one.claim.call_id, "fence": one.claim.fence}
            if self._tell(one, lambda: attempts.release(**held, grounds="Drain."), broken):
                one.said = "released"

    @rule(pick=picks, finding=st.sampled_from(ProbeFinding), broken=breaks)
    def answer_a_probe(self, pick: int, finding: ProbeFinding, broken: Break | None) -> None:
        """A probe tells what is there now; one that is not authoritative may overlook it."""
        one = self._pick(pick, "probe")
        if one is None:
            return
        probe, story = one.claim.policy.probe, self.world.story_of(one.claim)
        if finding is ProbeFinding.HAPPENED and not story.effects:
            finding = ProbeFinding.UNKNOWN
        no = finding is ProbeFinding.DID_NOT_HAPPEN
        if no and story.effects and probe is not None and probe.authoritative:
            finding, no = ProbeFinding.HAPPENED, False
        self._tell(one, lambda: reports.probed(claim=one.claim, finding=finding), broken)
        one.said = "probed"

    # What befalls workers

    def _hire(self, kind: FenceKind) -> None:
        """A worker holds its lock on a connection of its own, as its process would."""
        wrapper = connection.copy()
        with used(wrapper):
            holder = workers.register(
                name=f"worker-{len(self.workers)}", queues=builders.ALL_QUEUES, slots=4,
                fence_kind=kind,
            )  # fmt: skip
        self.workers.append((wrapper, holder))

    @rule(which=st.integers(0, 1))
    def a_worker_dies(self, which: int) -> None:
        wrapper, holder = self.workers.pop(which)
        pid = wrapper.connection.info.backend_pid
        wrapper.close()
        until_gone(pid)
        watchdog.find_dead_workers()
        self._hire(holder.fence_kind)
        self.workers.sort(key=lambda each: each[1].fence_kind)

    # What time does

    @rule(sweeps=st.booleans())
    def the_next_date_comes(self, sweeps: bool) -> None:
        if ahead := passing.seconds_to_the_next_date():
            passing.passes(ahead + 0.01)
        if sweeps:
            passing.sweep()

    @rule(seconds=st.sampled_from([1, 6, 21, 61, 301, 86_401]))
    def time_passes(self, seconds: float) -> None:
        passing.passes(seconds)

    @rule(broken=breaks)
    def sweep(self, broken: Break | None) -> None:
        """A sweep that loses its line says so of the row it was at; without that, none may fail."""
        try:
            self._do(watchdog.sweep if broken else passing.sweep, broken)
        except Unheard:
            return

    @rule()
    def the_watchdog_was_late(self) -> None:
        watchdog.grant_one_lease()

    # What always holds

    @invariant()
    def the_ledger_says_what_is_true(self) -> None:
        now = dict(
            (row[0], row[1:])
            for row in ToolCall.objects.values_list("id", "state", "effect", "head_hash")
        )
        for call_id, (state, effect, _) in now.items():
            if call_id in self.world.stories:
                self.world.agrees(call_id, state, effect)

    @invariant()
    def every_open_call_is_dated_and_settled_ones_never_move(self) -> None:
        for row in ToolCall.objects.values_list("id", "due_at", "state", "effect", "settled_at"):
            story = self.world.stories[row[0]]
            now = tuple(map(str, row[2:])) if row[4] is not None else None
            assert now is not None or row[1] is not None
            assert story.settled in (None, now)
            story.settled = now


@pytest.mark.django_db(transaction=True)
def test_any_history_keeps_what_the_ledger_promises(tmp_path: Path) -> None:
    History.folder = tmp_path
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=HISTORIES or 30,
            stateful_step_count=25,
            report_multiple_bugs=False,
            derandomize=not HISTORIES,
            database=None,
            deadline=None,
            # Shrinking replays histories for minutes; twenty-five steps can be read as they are.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
