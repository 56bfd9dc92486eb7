"""One history: a workspace, what agents and workers do in it, what befalls them, and the world.

Every act draws what it needs from a given `Random`, so that a history is a list of numbers.
Real verbs, real PostgreSQL, real commits. Any verb may be broken off at any statement: its
client dies there, or only its line is cut. Refusals of the ledger are answers; anything else
that is raised is a finding.
"""

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from ledger import attempts, calls, claims, handles, sessions, settlements, submits, workers
from ledger.errors import FenceLost, KeyReused, LedgerError, QueueFull, TurnClosed
from ledger.journal import events_of
from ledger.models import Attempt, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.submits import Recorded
from ledger.verification import Violation, verify
from ledger.vocabulary import Cause, FenceKind, Meaning, ProbeFinding
from ledger.workers import Holder
from recovery import reports, watchdog
from recovery.models import Incident, Resolution
from tests import builders, passing
from tests.cast import found_acme
from tests.clearing import clear, forget
from tests.lines import Died, Line, mortal, until_gone, used
from tests.properties.verbs import CLASSES
from tests.properties.world import Story, Try, World
from tests.recovery import deciding

F = ProbeFinding
AWAY = (DatabaseError, InterfaceError)
CALLS = 12
STATEMENTS = 12
CHANGES_ITS_MIND_S = 11.0
"""Longer than the delay in which a decision can be taken back."""
SILENCE_S = 16.0
"""Longer than any lease."""
UNKNOWN = (Cause.HANG, Cause.CONNECTION_LOST, Cause.RESOURCE_KILLED)
REFUSED = (Cause.RATE_LIMITED, Cause.VALIDATION, Cause.AUTH)
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"probe": {"authoritative": True, "interval_s": 1}, "tool_error_means": "no_effect"},
    {"probe": {}, "retries_tool_errors": True},
)
HOW_OFTEN = [
    of_class * of_variant
    for of_class in (1, 4, 3, 1, 5)
    for of_variant in (1, 3, 1)
]  # fmt: skip
"""The weight of each tool, class by class: most where an effect can be lost and asked after."""
SAYINGS = {
    "run": ("succeeds", "succeeds", "crosses", "lives", "does_not_know", "is_refused",
            "did_not_begin", "fails", "parks", "parks", "gives_back"),
    "poll": ("succeeds", "parks", "lives", "does_not_know", "is_refused", "fails",
             "loses_the_handle"),
    "probe": ("tells_what_is_there", "tells_what_is_there", "overlooks", "lives"),
}  # fmt: skip
"""What an attempt of each kind may say, early or late; each is a method of History."""
ACTS = {
    "submits": 6, "cancels": 1, "ends_or_opens_the_turn": 1, "decides": 3, "works": 4, "acts": 4,
    "says_something": 10, "dies": 1, "comes_to_the_next_date": 5, "falls_silent": 2,
    "passes_unwatched": 1, "sweeps": 1,
}  # fmt: skip
"""What may happen next, and how often; each is a method of History."""


class Unheard(Exception):
    """The client is gone, or its answer is: what was committed, only the ledger knows."""


class History:
    """Three tools of each class, two workers, one agent with one session."""

    def __init__(self, folder: Path) -> None:
        forget()
        self.acme = found_acme()
        self.line = Line(folder)
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

    def goes_on(self, chance: Random) -> str:
        """Let something happen, then hold the ledger against the world; what it was."""
        [act] = chance.choices(list(ACTS), weights=list(ACTS.values()))
        getattr(self, act)(chance)
        self.agrees()
        return act

    def ends(self) -> None:
        """Let time pass until nobody but persons can do anything; then all must hold."""
        try:
            self._is_sound(verify(liveness=False))
            passing.until_quiet()
            self._is_sound(each for each in verify() if not self._waits_for_a_person(each))
            self._has_owners()
            self.agrees()
        finally:
            for wrapper, _ in self.workers:
                wrapper.close()
            self.line.__exit__()
            clear()

    @staticmethod
    def _is_sound(violations: Iterable[Violation]) -> None:
        told = [f"{each}\n{_told(each.call_id)}" for each in violations]
        assert not told, "\n".join(told)

    @staticmethod
    def _waits_for_a_person(violation: Violation) -> bool:
        """Nobody sweeps what is ambiguous while the others come to rest, so it may be overdue."""
        return ToolCall.objects.filter(id=violation.call_id, state="ambiguous").exists()

    @staticmethod
    def _has_owners() -> None:
        for call in ToolCall.objects.open():
            assert (call.state, call.effect) == ("ambiguous", "possible")
            assert call.review_at is not None
            assert Incident.objects.filter(call=call, closed_at=None).count() == 1

    def agrees(self) -> None:
        """What the ledger says is true, every open call is dated, settled ones never move."""
        columns = ("id", "due_at", "settled_at", "state", "effect")
        for id_, due_at, settled_at, state, effect in ToolCall.objects.values_list(*columns):
            self.world.agrees(id_, state, effect)
            assert settled_at is not None or due_at is not None
            self.world.settles(id_, settled_at and (str(state), str(effect)))

    # How a verb is run

    def _do(self, chance: Random, verb: Callable[[], Any]) -> Any:
        """Run a verb as its client would; Unheard where nobody is left to hear the answer."""
        if chance.random() > 0.2:
            return verb()
        client = self.line.connect()
        pid = self.line.pid
        self.line.cut(chance.randint(1, STATEMENTS), answered=chance.random() < 0.5)
        try:
            with used(client if chance.random() < 0.5 else mortal(client)):
                return verb()
        except (Died, *AWAY) as error:
            raise Unheard from error
        finally:
            client.close()
            until_gone(pid)
            self.line.fate = None

    def _tell(self, chance: Random, one: Try, verb: Callable[[], Any]) -> bool:
        """Let an attempt use a verb of its own; whether it heard that this was done."""
        is_stale = self.world.is_stale(one)
        try:
            self._do(chance, verb)
        except Unheard:
            self._reread(one)
            return False
        except FenceLost:
            return False
        except LedgerError:
            assert not is_stale, "a lost fence was told otherwise"
            return False
        assert not is_stale, "a lost fence was obeyed"
        return True

    def _reread(self, one: Try) -> None:
        """What was committed before the break, as the rows tell it; the tool itself is gone."""
        row = Attempt.objects.get(id=one.claim.attempt_id)
        if row.crossed_at is not None and not one.crossed:
            self.world.crosses(one)
            one.said = "died"
        if row.outcome not in ("", "lost") and not one.said:
            one.said = row.outcome

    # What agents do

    def submits(self, chance: Random) -> None:
        """Submit without a name, under a key, or at a place of the turn; then somebody works."""
        if len(self.world.stories) >= CALLS:
            return
        n = chance.randint(0, 1)
        place = {"session_id": self.session.id, "turn_id": self.turn.id,
                 "tool_call_id": "toolu_1", "position": n}  # fmt: skip
        fields = chance.choice([{}, {}, {"idempotency_key": f"k{n}"}, place])
        [number] = chance.choices(range(len(self.tools)), weights=HOW_OFTEN)
        self._submit(chance, number, fields)
        self.works(chance)

    def _submit(self, chance: Random, number: int, fields: dict[str, Any]) -> None:
        tool = self.tools[number]
        submit = builders.a_submit(self.acme, tool, **fields)
        earlier = self.names.get(submit.name) if submit.name else None
        try:
            answer = self._do(chance, lambda: submits.record([submit])[0])
        except Unheard:
            # An agent asks again with the same submit, and is told the same (R7).
            answer = submits.record([submit])[0]
        if isinstance(answer, Recorded):
            assert earlier in (None, answer.call_id)
            assert earlier is None or self._tool_of(earlier) == tool.name
            self.names[submit.name or (answer.call_id,)] = answer.call_id
            self.world.stories.setdefault(answer.call_id, Story(CLASSES[number // len(VARIANTS)]))
        elif isinstance(answer, KeyReused):
            assert earlier is not None
            assert self._tool_of(earlier) != tool.name
        else:
            assert isinstance(answer, QueueFull | TurnClosed)

    @staticmethod
    def _tool_of(call_id: UUID) -> str:
        return ToolCall.objects.get(id=call_id).tool

    def ends_or_opens_the_turn(self, chance: Random) -> None:
        if self.turn.closed_at is None:
            self.turn = sessions.close_turn(turn=self.turn, closed_as="ended")
        else:
            self.turn = builders.a_turn(self.session)

    def cancels(self, chance: Random) -> None:
        owner = {"workspace_id": self.acme.workspace.id, "agent_id": self.acme.ada.id}
        if self.world.stories:
            call_id = chance.choice(sorted(self.world.stories))
            try:
                self._do(chance, lambda: calls.cancel(**owner, call_id=call_id))
            except (LedgerError, Unheard):
                return

    # What a person does

    def decides(self, chance: Random) -> None:
        """Whoever looked outside says what is there, once the lost attempts are proven dead."""
        asked = list(ToolCall.objects.filter(state="ambiguous").order_by("id"))
        if not asked:
            return
        call = chance.choice(asked)
        story = self.world.stories[call.id]
        no = ("did_not_happen", chance.choice(["close", "repeat"]))
        answer = ("happened", "") if story.effects else no
        with contextlib.suppress(LedgerError, Unheard):
            self._do(chance, lambda: deciding.decide(self.acme, call, *answer))
        if answer is no and Resolution.objects.filter(call=call).exists():
            self._deny(story, ClockTimestamp())
        if chance.random() < 0.7:
            passing.passes(CHANGES_ITS_MIND_S)
            passing.sweep()
            self.works(chance)

    # What workers do

    def works(self, chance: Random) -> None:
        """Win what is due; most tools cross as they begin, and most questions are answered."""
        _, holder = chance.choice(self.workers)
        for queue in builders.ALL_QUEUES:
            for one in self._claim(chance, queue, holder):
                if not one.is_run and chance.random() < 0.7:
                    self._says(one, chance)
                elif one.is_run and chance.random() < 0.8:
                    self._crosses(one, chance)
                    if chance.random() < 0.4:
                        self._act(one)

    def _claim(self, chance: Random, queue: str, holder: Holder) -> list[Try]:
        try:
            won = self._do(chance, lambda: claims.claim(queue=queue, holder=holder, limit=3))
        except Unheard:
            for call in ToolCall.objects.open():
                self.world.stories[call.id].newest = call.fence
            return []
        return [self.world.won(each) for each in won]

    def acts(self, chance: Random) -> None:
        """A tool that crossed changes the outside: also a lost one, until it is proven dead."""
        able = [each for each in self.world.tries() if each.may_act]
        if able:
            self._act(chance.choice(able))

    def _act(self, one: Try) -> None:
        over = Attempt.objects.filter(id=one.claim.attempt_id, unlocks_at__lte=ClockTimestamp())
        if one.may_act and not over.exists():
            one.acted = True

    def says_something(self, chance: Random) -> None:
        """An attempt of which the end is not known yet tells what is true, early or late."""
        silent = [each for each in self.world.tries() if not each.said]
        if silent:
            self._says(chance.choice(silent[-4:]), chance)

    def _says(self, one: Try, chance: Random) -> None:
        getattr(self, f"_{chance.choice(SAYINGS[str(one.claim.kind)])}")(one, chance)

    # What attempts say

    def _crosses(self, one: Try, chance: Random) -> None:
        claim = one.claim
        if not one.is_run or claim.policy.recovery_class == "read_only":
            return
        was = one.crossed
        held = {"call_id": claim.call_id, "fence": claim.fence}
        if self._tell(chance, one, lambda: attempts.cross(**held)) and not was:
            self.world.crosses(one)

    def _lives(self, one: Try, chance: Random) -> None:
        held = {"call_id": one.claim.call_id, "fence": one.claim.fence}
        cursor = chance.choice([None, 1, 2])
        self._tell(chance, one, lambda: attempts.heartbeat(**held, cursor=cursor))

    def _succeeds(self, one: Try, chance: Random) -> None:
        """Having acted, or saying that nothing was to be done; a poll sees that it was done."""
        worked = self._worked(one)
        if worked is not None and (chance.random() < 0.7 or not one.is_run):
            self._act(worked)
        if worked is None or (not one.is_run and worked.crossed and not worked.acted):
            return  # its work cannot be done any more, so nobody could see it done
        changed_nothing = one.is_run and one.crossed and not one.acted
        settlement = builders.settlement(one.claim, {"n": 1}, changed_nothing=changed_nothing)
        self._tell(chance, one, lambda: self._settle(settlement))
        one.said = "settled"

    @staticmethod
    def _settle(settlement: settlements.Settlement) -> None:
        answer = settlements.settle([settlement])[0]
        if answer is not None:
            raise answer

    def _does_not_know(self, one: Try, chance: Random) -> None:
        self._end(one, chance, chance.choice(UNKNOWN), Meaning.UNKNOWN, "unknown")

    def _is_refused(self, one: Try, chance: Random) -> None:
        """Only who did not act can have been refused; a refused job never acts."""
        worked = self._worked(one)
        if worked and not worked.acted:
            worked.said = worked.said and "refused"
            cause = chance.choice(REFUSED)
            worked.denied |= self._end(one, chance, cause, Meaning.REFUSED, "refused")

    def _did_not_begin(self, one: Try, chance: Random) -> None:
        if not one.acted:
            cause = Cause.CONNECT_FAILED
            one.denied |= self._end(one, chance, cause, Meaning.NOT_BEGUN, "not begun")

    def _fails(self, one: Try, chance: Random) -> None:
        """A tool whose errors mean "no effect" tells them only where that is so."""
        worked = self._worked(one)
        denies = one.claim.policy.tool_error_means == "no_effect"
        if worked is None or (denies and worked.acted):
            return
        if denies:
            worked.said = worked.said and "error"
        heard = self._end(one, chance, Cause.TOOL_ERROR, Meaning.KNOWN, "error")
        worked.denied |= heard and denies

    def _worked(self, one: Try) -> Try | None:
        """The attempt whose work this one reports of: itself, or the run that it polls for."""
        return one if one.is_run else self.world.story_of(one.claim).last_run(one.claim.fence)

    def _loses_the_handle(self, one: Try, chance: Random) -> None:
        self._end(one, chance, Cause.VANISHED, Meaning.UNKNOWN, "unknown")

    def _end(self, one: Try, chance: Random, cause: Cause, means: Meaning, said: str) -> bool:
        """Report, and file what comes too late as evidence, as a worker does."""
        report = lambda: reports.ended(claim=one.claim, cause=cause, means=means)  # noqa: E731
        heard = self._tell(chance, one, report)
        one.said = said
        return heard or Attempt.objects.get(id=one.claim.attempt_id).outcome == "ended"

    def _parks(self, one: Try, chance: Random) -> None:
        if one.is_run and not one.crossed and one.claim.policy.recovery_class != "read_only":
            return
        handle = handles.HandleToStore(value=f"job-{one.claim.call_id}")
        held = {"call_id": one.claim.call_id, "fence": one.claim.fence}
        self._tell(chance, one, lambda: handles.park(**held, handle=handle))
        one.said = "parked"

    def _gives_back(self, one: Try, chance: Random) -> None:
        held = {"call_id": one.claim.call_id, "fence": one.claim.fence}
        if not one.crossed and self._tell(
            chance, one, lambda: attempts.release(**held, grounds="Drain.")
        ):
            one.said = "released"

    def _tells_what_is_there(self, one: Try, chance: Random) -> None:
        there = self.world.story_of(one.claim).effects
        self._probed(one, chance, F.HAPPENED if there else F.DID_NOT_HAPPEN)

    def _overlooks(self, one: Try, chance: Random) -> None:
        """A probe may not know; one that is not authoritative may not find what is there."""
        probe = one.claim.policy.probe
        trusted = probe is not None and probe.authoritative
        self._probed(one, chance, F.UNKNOWN if trusted else F.DID_NOT_HAPPEN)

    def _probed(self, one: Try, chance: Random, finding: ProbeFinding) -> None:
        self._tell(chance, one, lambda: reports.probed(claim=one.claim, finding=finding))
        one.said = "probed"
        probe = one.claim.policy.probe
        if finding is F.DID_NOT_HAPPEN and probe is not None and probe.authoritative:
            self._deny_the_dead(one)

    def _deny_the_dead(self, probe: Try) -> None:
        """A trusted no counts for who was dead, with nothing in flight, when it was asked."""
        asked_at = Attempt.objects.get(id=probe.claim.attempt_id).claimed_at
        self._deny(self.world.story_of(probe.claim), asked_at)

    @staticmethod
    def _deny(story: Story, asked_at: Any) -> None:
        for each in story.tries.values():
            dead = Attempt.objects.filter(id=each.claim.attempt_id, unlocks_at__lte=asked_at)
            each.denied |= dead.exists()

    # What befalls workers

    def _hire(self, kind: FenceKind) -> None:
        """A worker holds its lock on a connection of its own, as its process would."""
        wrapper = connection.copy()
        with used(wrapper):
            holder = workers.register(
                name=f"worker of {kind}", queues=builders.ALL_QUEUES, slots=4, fence_kind=kind
            )
        self.workers.append((wrapper, holder))

    def dies(self, chance: Random) -> None:
        """A worker's process ends, its lock is free, and another one takes its place."""
        wrapper, holder = self.workers.pop(chance.randrange(len(self.workers)))
        pid = wrapper.connection.info.backend_pid
        wrapper.close()
        until_gone(pid)
        watchdog.find_dead_workers()
        self._hire(holder.fence_kind)

    # What time does

    def comes_to_the_next_date(self, chance: Random) -> None:
        if ahead := passing.seconds_to_the_next_date():
            passing.passes(ahead + 0.01)
        passing.sweep()
        if chance.random() < 0.6:
            self.works(chance)

    def falls_silent(self, chance: Random) -> None:
        """For longer than a lease nothing is heard: every attempt that runs is lost."""
        passing.passes(SILENCE_S)
        for _ in range(2):
            passing.sweep()
        if chance.random() < 0.6:
            self.works(chance)

    def passes_unwatched(self, chance: Random) -> None:
        """A watchdog that notices grants one lease to all who run (R35)."""
        passing.passes(chance.choice([1, 6, 61, 301, 4_000]))
        if chance.random() < 0.5:
            watchdog.grant_one_lease()

    def sweeps(self, chance: Random) -> None:
        """A sweep that loses its line says so of the row it was at, and goes on."""
        try:
            self._do(chance, watchdog.sweep)
        except Unheard:
            return


def _told(call_id: UUID | None) -> str:
    """The events and attempts of a call, for whoever reads what was found."""
    if call_id is None:
        return ""
    events = [
        f"{each.seq} {each.kind} to {each.to_state} ({each.effect}) fence {each.fence} "
        f"{each.cause} by {each.actor} {each.facts[:200]}"
        for each in events_of(call_id)
    ]
    tries = [
        f"attempt {each.fence}: {each.kind} {each.outcome} {each.means} crossed {each.crossed_at} "
        f"ended {each.ended_at}"
        for each in Attempt.objects.filter(call=call_id).order_by("fence")
    ]
    return "\n".join((*events, *tries))
