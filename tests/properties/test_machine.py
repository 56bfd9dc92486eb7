"""Any sequence of verbs leaves the ledger's invariants whole: real PostgreSQL, random histories.

Refusals of the ledger are answers; anything else that is raised is a finding.
"""

from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from ledger import attempts, calls, claims, handles, settlements
from ledger.claims import Claim
from ledger.errors import LedgerError
from ledger.models import ToolCall
from ledger.verification import verify
from ledger.vocabulary import SETTLED, CallState, Cause, Deadline, Meaning, ProbeFinding
from recovery import reports
from tests import builders
from tests.cast import Acme, found_acme

CLASSES = ("read_only", "idempotent_write", "side_effect", "long_running", "provider_auth")
UNKNOWN = (Cause.HANG, Cause.CONNECTION_LOST, Cause.SERVER_ERROR, Cause.RESOURCE_KILLED)
REFUSED = (Cause.RATE_LIMITED, Cause.VALIDATION, Cause.AUTH)
picks = st.integers(0, 1_000)


class History(RuleBasedStateMachine):
    """One workspace, two tools of each class (probed and not), a worker, and what befalls."""

    acme: Acme

    def __init__(self) -> None:
        super().__init__()
        self.undo = transaction.atomic()
        self.undo.__enter__()
        self.acme = found_acme()
        self.worker = builders.a_worker()
        self.tools = [
            builders.a_tool(self.acme, recovery_class=each, probe=probe)
            for each in CLASSES
            for probe in (None, {"authoritative": True})
        ]
        self.claims: list[Claim] = []
        self.settled: dict[Any, tuple[str, str]] = {}

    def teardown(self) -> None:
        try:
            connection.check_constraints()
            violations = [v for v in verify() if v.number != "I24"]
            assert violations == []
        finally:
            transaction.set_rollback(True)
            self.undo.__exit__(None, None, None)

    def _pick(self, pick: int, *kinds: str) -> Claim | None:
        """One of the claims ever won, current or lost; the newest half of the time."""
        some = [claim for claim in self.claims if claim.kind in kinds]
        if not some:
            return None
        return some[-1] if pick % 2 else some[pick // 2 % len(some)]

    @staticmethod
    def _open_call(pick: int) -> ToolCall | None:
        known = list(ToolCall.objects.open().order_by("id"))
        return known[pick % len(known)] if known else None

    @staticmethod
    def _try(verb: Any, **arguments: Any) -> None:
        try:
            with transaction.atomic():
                verb(**arguments)
        except LedgerError:
            return

    # What agents do

    @initialize(classes=st.lists(st.integers(0, 9), min_size=2, max_size=3))
    def begin(self, classes: list[int]) -> None:
        for each in classes:
            self.submit(each, None)
        self.claim(crossing=True)

    @rule(tool=st.integers(0, 9), key=st.sampled_from([None, "k1"]))
    def submit(self, tool: int, key: str | None) -> None:
        submit = builders.a_submit(self.acme, self.tools[tool], idempotency_key=key)
        self._try(lambda: builders.answer_to(submit))

    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        if call := self._open_call(pick):
            self._try(calls.cancel, workspace_id=call.workspace_id, agent_id=call.agent_id,
                      call_id=call.id)  # fmt: skip

    # What workers do

    @rule(crossing=st.booleans())
    def claim(self, crossing: bool) -> None:
        """Win what is due; most tools cross as they begin."""
        for queue in builders.ALL_QUEUES:
            won = claims.claim(queue=queue, holder=self.worker, limit=3)
            self.claims += won
            for claim in won if crossing else ():
                self._cross(claim)

    @rule(pick=picks)
    def cross(self, pick: int) -> None:
        if claim := self._pick(pick, "run"):
            self._cross(claim)

    def _cross(self, claim: Claim) -> None:
        if claim.kind == "run" and claim.policy.recovery_class != "read_only":
            self._try(attempts.cross, call_id=claim.call_id, fence=claim.fence)

    @rule(pick=picks, cursor=st.sampled_from([None, 1, 2]))
    def heartbeat(self, pick: int, cursor: int | None) -> None:
        if claim := self._pick(pick, "run", "poll", "probe"):
            self._try(attempts.heartbeat, call_id=claim.call_id, fence=claim.fence, cursor=cursor)

    @rule(pick=picks, changed_nothing=st.booleans(), result=st.integers(0, 1))
    def settle(self, pick: int, changed_nothing: bool, result: int) -> None:
        if claim := self._pick(pick, "run", "poll"):
            settlements.settle(
                [builders.settlement(claim, {"n": result}, changed_nothing=changed_nothing)]
            )

    @rule(pick=picks, cause=st.sampled_from(UNKNOWN))
    def report_the_unknown(self, pick: int, cause: Cause) -> None:
        self._report(pick, cause, Meaning.UNKNOWN)

    @rule(pick=picks, cause=st.sampled_from(REFUSED))
    def report_a_refusal(self, pick: int, cause: Cause) -> None:
        self._report(pick, cause, Meaning.REFUSED)

    @rule(pick=picks)
    def report_a_tools_error(self, pick: int) -> None:
        self._report(pick, Cause.TOOL_ERROR, Meaning.KNOWN)

    @rule(pick=picks)
    def lose_a_handle(self, pick: int) -> None:
        if claim := self._pick(pick, "poll"):
            self._try(reports.ended, claim=claim, cause=Cause.VANISHED, means=Meaning.UNKNOWN)

    def _report(self, pick: int, cause: Cause, means: Meaning) -> None:
        if claim := self._pick(pick, "run", "poll"):
            self._try(reports.ended, claim=claim, cause=cause, means=means)

    @rule(pick=picks)
    def park(self, pick: int) -> None:
        claim = self._pick(pick, "run", "poll")
        if claim and ToolCall.objects.get(id=claim.call_id).effect in ("none", "possible"):
            handle = handles.HandleToStore(value=f"job-{claim.call_id}")
            self._try(handles.park, call_id=claim.call_id, fence=claim.fence, handle=handle)

    @rule(pick=picks)
    def give_back(self, pick: int) -> None:
        if claim := self._pick(pick, "run"):
            self._try(attempts.release, call_id=claim.call_id, fence=claim.fence, grounds="Drain.")

    @rule(pick=picks, finding=st.sampled_from(ProbeFinding))
    def answer_a_probe(self, pick: int, finding: ProbeFinding) -> None:
        if claim := self._pick(pick, "probe"):
            self._try(reports.probed, claim=claim, finding=finding)

    # What time does

    @rule(pick=picks)
    def the_next_deadline_passes(self, pick: int) -> None:
        if call := self._open_call(pick):
            due = min((at, d) for d in Deadline if (at := getattr(call, f"{d}_at")) is not None)
            builders.past(call, due[1])
            builders.fire()
            self.claim(crossing=True)

    @rule(pick=picks, deadline=st.sampled_from(Deadline))
    def another_deadline_passes(self, pick: int, deadline: Deadline) -> None:
        call = self._open_call(pick)
        if call and getattr(call, f"{deadline}_at") is not None:
            builders.past(call, deadline)
            builders.fire()

    @rule(pick=picks)
    def a_worker_falls_silent(self, pick: int) -> None:
        claim = self._pick(pick, "run", "poll", "probe")
        call = claim and ToolCall.objects.get(id=claim.call_id)
        if call and call.heartbeat_at is not None:
            builders.lost(call)
            builders.fire()

    @rule(pick=picks)
    def a_death_is_proved(self, pick: int) -> None:
        if call := self._open_call(pick):
            builders.unlock_denial(call)
            builders.fire()

    # What always holds

    @invariant()
    def every_open_call_is_due(self) -> None:
        assert not ToolCall.objects.open().filter(due_at=None).exists()

    @invariant()
    def settled_never_moves(self) -> None:
        now = {
            call.id: (str(call.state), str(call.effect))
            for call in ToolCall.objects.filter(state__in=SETTLED)
        }
        for id_, stood in self.settled.items():
            assert now[id_] == stood
        self.settled = now

    @invariant()
    def a_side_effect_never_fails_with_its_effect_open(self) -> None:
        closed = [CallState.FAILED, CallState.CANCELLED, CallState.REJECTED]
        assert not ToolCall.objects.filter(state__in=closed, effect="possible").exists()


@pytest.mark.django_db
def test_any_history_of_verbs_keeps_the_invariants() -> None:
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=25,
            stateful_step_count=15,
            deadline=None,
            # Shrinking replays histories for minutes; fifteen steps can be read as they are.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
