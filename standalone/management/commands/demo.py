"""`manage.py demo`: a believable afternoon, with a call in every state that the verbs reach.

Everything is made by the verbs and executed by the running workers; two of the calls are
interrupted for real, by `kill -9` of the pool child that executes them.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from ledger import calls, registry, sessions, submits
from ledger.conditions import Seen
from ledger.models import Agent, Attempt, Policy, Session, Tool, ToolCall, Turn, Workspace
from ledger.registry import Author, Declaration
from ledger.submits import Recorded, Submit
from ledger.vocabulary import CallState

AUTHOR = Author(name="demo", grounds="So that the first look at the console is not an empty one.")
LIMIT_S = 30.0
NEVER_ANSWERS = 9  # the discard port: nothing listens there
PATIENT = {"initial_interval_s": 60, "factor": 10, "interval_cap_s": 3600}


class Command(BaseCommand):
    help = "Seed one session with calls in every state that the verbs so far reach."

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.order_by("created_at").first()
        agent = Agent.objects.filter(workspace=workspace).first() if workspace else None
        if workspace is None or agent is None:
            raise CommandError("There is no workspace yet. Run `manage.py up` first.")
        afternoon = Afternoon(workspace, agent)
        afternoon.live()
        seen = sorted(
            set(ToolCall.objects.filter(session=afternoon.session).values_list("state", flat=True))
        )
        self.stdout.write(f"The demo has calls that are {', '.join(seen)}.")


class Afternoon:
    """One session of one agent, in which everything happens that can happen so far."""

    def __init__(self, workspace: Workspace, agent: Agent) -> None:
        self.workspace = workspace
        self.agent = agent
        self.session: Session
        self.session, _ = sessions.open_session(
            workspace_id=workspace.id,
            agent_id=agent.id,
            label="Quarterly newsletter",
            working_directory="/srv/newsletter",
            host="desk-7",
            model="house-model-4",
        )
        self.turn: Turn
        self.turn, _ = sessions.open_turn(session=self.session)
        self.step = 0

    def live(self) -> None:
        """Go through the afternoon; the calls that stay open come last."""
        self._ordinary_work()
        self._refusals()
        self._interruptions()
        self._what_stays_open()

    def _ordinary_work(self) -> None:
        self._settled("sandbox.lookup", name="opening-hours")
        self._settled("sandbox.write_artifact", path="newsletter/draft.txt", text="Dear readers,")
        self._settled("sandbox.send_mail", to="editor@example.org", subject="Draft",
                      body="The draft is in the usual place.")  # fmt: skip
        self._settled("sandbox.render", frames=12, seconds=1)

    def _refusals(self) -> None:
        self._settled("sandbox.lookup", name="no-such-entry")
        registry.switch(
            workspace_id=self.workspace.id, tool_name="sandbox.pay", on=False, by=AUTHOR
        )
        self._submit("sandbox.pay", payee="printer", amount_cents=129900,
                     currency="EUR")  # fmt: skip
        registry.switch(workspace_id=self.workspace.id, tool_name="sandbox.pay", on=True, by=AUTHOR)
        with transaction.atomic():
            # One transaction, so that no worker sees the call before it is cancelled.
            call_id = self._submit("sandbox.send_mail", to="all@example.org", subject="Oops",
                                   body="Sent too early.")  # fmt: skip
            calls.cancel(workspace_id=self.workspace.id, agent_id=self.agent.id, call_id=call_id)
        self._settled("sandbox.device_login", expires_in_s=2)

    def _interruptions(self) -> None:
        self._next_turn()
        self._killed(
            {"probe": None}, CallState.AMBIGUOUS,
            to="subscribers@example.org", subject="Newsletter 4/26",
            body="To all subscribers.", pause_after_cross_s=60,
        )  # fmt: skip
        # Whether the newsletter went out is not known, so what follows it waits.
        self._submit("sandbox.send_mail", to="editor@example.org", subject="Sent",
                     body="The newsletter is out.")  # fmt: skip
        self._next_turn()
        self._killed(
            {"probe": {"authoritative": False, "interval_s": 600}, "recovery_window_s": 3600},
            CallState.INTERRUPTED,
            to="sponsor@example.org", subject="Invoice 2291",
            body="Please find the invoice attached.", pause_after_cross_s=60,
        )  # fmt: skip

    def _what_stays_open(self) -> None:
        self._next_turn()
        self._unreachable_crm()
        self._submit("sandbox.render", frames=600, seconds=600)
        for minute in range(4):
            self._submit("sandbox.write_artifact", path=f"newsletter/page-{minute}.txt",
                         text="Slowly written.", pause_before_s=25)  # fmt: skip
        self._until(lambda: self._in_state(CallState.RUNNING, CallState.PARKED) >= 2)

    def _unreachable_crm(self) -> None:
        """A tool whose service is down: nothing was begun, so the call backs off."""
        address = f"http://127.0.0.1:{NEVER_ANSWERS}"
        registry.put(
            workspace=self.workspace,
            declaration=Declaration(
                name="crm.update_contact",
                executor="http",
                description="Write a contact into the CRM.",
                config={
                    "method": "PUT",
                    "url": f"{address}/contacts/{{contact}}",
                    "allow": {
                        "hosts": ["127.0.0.1"],
                        "private_hosts": ["127.0.0.1"],
                        "schemes": ["http"],
                        "ports": [NEVER_ANSWERS],
                    },
                },
                effect_kinds=["external_write"],
            ),
            policy={
                "recovery_class": "idempotent_write",
                "key_template": "contact:{contact}",
                "boundary": "transport",
                "retry": PATIENT,
                "timeouts": {"schedule_to_close_s": 86400},
            },
            by=AUTHOR,
        )
        call_id = self._submit("crm.update_contact", contact="4711", city="Basel")
        self._until(lambda: self._state_of(call_id) is CallState.BACKING_OFF)

    def _killed(self, policy: Mapping[str, Any], becomes: CallState, **arguments: Any) -> None:
        """Send under this policy and kill the pool child behind the boundary."""
        before = self._policy_of("sandbox.send_mail")
        self._put_policy(before.document | policy)
        call_id = self._submit("sandbox.send_mail", **arguments)
        self._put_policy(before.document)
        self._until(lambda: self._crossed(call_id))
        worker = Attempt.objects.get(call=call_id, ended_at__isnull=True).worker
        if worker.host != socket.gethostname():
            raise CommandError(f"Worker {worker.name} runs on {worker.host}, not here.")
        os.kill(worker.pid, signal.SIGKILL)
        self._until(lambda: self._state_of(call_id) is becomes)

    def _policy_of(self, tool_name: str) -> Policy:
        tool = Tool.objects.get(workspace=self.workspace, name=tool_name)
        return tool.policies.get(number=tool.policy_version)

    def _put_policy(self, document: Mapping[str, Any]) -> None:
        registry.put_policy(
            workspace_id=self.workspace.id,
            tool_name="sandbox.send_mail",
            document=document,
            by=AUTHOR,
            seen=Seen(version=self._policy_of("sandbox.send_mail").number),
        )

    def _submit(self, tool: str, **arguments: Any) -> UUID:
        self.step += 1
        (answer,) = submits.record(
            [
                Submit(
                    workspace_id=self.workspace.id,
                    agent_id=self.agent.id,
                    session_id=self.session.id,
                    turn_id=self.turn.id,
                    tool=tool,
                    arguments=arguments,
                    tool_call_id=f"toolu_{self.step:02d}",
                    model_step=self.step,
                )
            ]
        )
        if not isinstance(answer, Recorded):
            raise CommandError(f"{tool} was refused: {answer}")
        return answer.call_id

    def _next_turn(self) -> None:
        """The user goes on: calls that are still open stay with the turn that asked for them."""
        sessions.close_turn(turn=self.turn, closed_as="interrupted")
        self.turn, _ = sessions.open_turn(session=self.session)

    def _settled(self, tool: str, **arguments: Any) -> None:
        call_id = self._submit(tool, **arguments)
        self._until(lambda: self._state_of(call_id).is_settled)

    def _state_of(self, call_id: UUID) -> CallState:
        return CallState(ToolCall.objects.values_list("state", flat=True).get(id=call_id))

    def _crossed(self, call_id: UUID) -> bool:
        return ToolCall.objects.filter(id=call_id, crossed_at__isnull=False).exists()

    def _in_state(self, *states: CallState) -> int:
        return ToolCall.objects.filter(session=self.session, state__in=states).count()

    def _until(self, reached: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not reached():
            if time.monotonic() - began > LIMIT_S:
                raise CommandError(
                    f"The demo waited {LIMIT_S:g} s in vain. Look at `manage.py status`: the "
                    "workers or the watchdog may not be running."
                )
            time.sleep(0.05)
