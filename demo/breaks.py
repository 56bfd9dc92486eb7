"""How calls break for real: `kill -9` of the process that executes one, and silence of a worker."""

import os
import signal
import socket
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import transaction

from demo.house import House
from demo.talks import Talk, worker_of
from demo.tools import AUTHOR
from ledger import attempts, claims, registry, settlements, strictjson, workers
from ledger.claims import Claim
from ledger.conditions import Seen
from ledger.models import Policy, Tool
from ledger.settlements import Settlement
from ledger.vocabulary import FenceKind


class Elsewhere(RuntimeError):
    """The worker of a call runs on another machine, so it cannot be killed from here."""


def kill_worker_of(call_id: UUID) -> None:
    """Kill the pool child that executes a call."""
    worker = worker_of(call_id)
    if worker.host != socket.gethostname():
        raise Elsewhere(f"Worker {worker.name} runs on {worker.host}, not here.")
    os.kill(worker.pid, signal.SIGKILL)


@contextmanager
def under_policy(house: House, tool: str, change: Mapping[str, Any]) -> Any:
    """What is called within the block has this policy; afterwards the one before holds again."""
    before = policy_of(house, tool)
    put_policy(house, tool, before.document | change)
    try:
        yield
    finally:
        put_policy(house, tool, before.document)


def policy_of(house: House, tool: str) -> Policy:
    row = Tool.objects.get(workspace=house.workspace, name=tool)
    return row.policies.get(number=row.policy_version)


def put_policy(house: House, tool: str, document: Mapping[str, Any]) -> None:
    registry.put_policy(
        workspace_id=house.workspace.id,
        tool_name=tool,
        document=document,
        by=AUTHOR,
        seen=Seen(version=policy_of(house, tool).number),
    )


class OldDesk:
    """A worker on a machine without a kernel fence, which falls silent and reports much later."""

    def __init__(self) -> None:
        self._holder = workers.register(
            name="old-desk", queues=["effects"], slots=4, fence_kind=FenceKind.NONE
        )
        self._claims: dict[UUID, Claim] = {}

    def takes(self, talk: Talk, tool: str, text: str, **arguments: Any) -> UUID | None:
        """Record a call and win it before any other worker sees it; None if another was due."""
        with transaction.atomic():
            call_id = talk.calls(tool, text, **arguments)
            (won,) = claims.claim(queue="effects", holder=self._holder, limit=1)
            if won.call_id != call_id:
                transaction.set_rollback(True)  # the other call is left to the other workers
                return None
        self._claims[call_id] = won
        attempts.cross(call_id=call_id, fence=won.fence)
        return call_id

    def reports(self, call_id: UUID, result: Any) -> None:
        """Report a success, however late."""
        settlements.settle(
            [
                Settlement(
                    claim=self._claims[call_id],
                    stored=strictjson.storable(result),
                    media_type="application/json",
                )
            ]
        )
