"""A new call as it is written: its row, and its first moves."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from ledger import dispatch, held, strictjson
from ledger.effect_keys import effect_key
from ledger.held import Held
from ledger.journal import Move, Position
from ledger.registered import Registered
from ledger.vocabulary import Actor, CallState, Deadline, Effect

if TYPE_CHECKING:
    from ledger.submits import Submit


class Digested(NamedTuple):
    """The canonical arguments and their hash."""

    arguments: str
    sha256: str


def digested(arguments: Mapping[str, Any]) -> Digested:
    """The canonical form of the arguments (semantics, section 10, rule 2)."""
    canonical = strictjson.canonical(arguments)
    return Digested(canonical.decode(), hashlib.sha256(canonical).hexdigest())


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call that no equal submit has recorded: its row, its moves, and why it is held, if it is.

    `rejected` is why it does not run at all, as a person or a policy says.
    """

    submit: "Submit"
    tool: Registered
    row: dict[str, Any]
    why: Held | None = None
    rejected: str = ""

    @property
    def state(self) -> CallState:
        """Where the call stands once it is recorded."""
        if self.rejected:
            return CallState.REJECTED
        return self.why.state if self.why else CallState.SCHEDULED

    @property
    def moves(self) -> list[Move]:
        """Recorded, and then on the way to a worker, to a question, or to its end."""
        recorded, after = self._recorded()
        if self.rejected:
            reason = {"reason": self.rejected}
            rejected = Move(
                call=after, kind="rejected", by=Actor.POLICY, facts=reason, columns=reason
            )
            return [recorded, rejected]
        if self.why is not None:
            return [recorded, *held.moves(self.why, after)]
        return [recorded, self._scheduled(after)]

    def _recorded(self) -> tuple[Move, Position]:
        submit, tool = self.submit, self.tool
        effect = Effect.NONE if tool.reads else Effect.NOT_BEGUN
        move = Move(
            call=Position(submit.call_id, submit.workspace_id, None, effect, 0),
            kind="recorded",
            by=Actor.AGENT,
            by_id=submit.agent_id.hex,
            facts={
                "arguments_sha256": self.row["arguments_sha256"],
                "tool": tool.name,
                "tool_version": tool.version,
                "policy_version": tool.policy_version,
                "epoch": self.row["binding_epoch"],
            },
        )
        after = Position(submit.call_id, submit.workspace_id, CallState.RECORDED, effect, 1)
        return move, after

    def _scheduled(self, after: Position) -> Move:
        times = self.tool.policy.timeouts
        return Move(
            call=after,
            kind="scheduled",
            by=Actor.LEDGER,
            facts={"attempt": 1},
            arm={
                Deadline.SCHEDULE_TO_START: times.schedule_to_start_s,
                Deadline.SCHEDULE_TO_CLOSE: times.schedule_to_close_s,
            },
        )


def row(submit: "Submit", tool: Registered, digest: Digested, epoch: int) -> dict[str, Any]:
    """The columns of a new call. Raises Invalid where the policy's template finds no key."""
    received = orjson.dumps(submit.arguments).decode()
    key = effect_key(tool.policy, submit.call_id, submit.arguments)
    return {
        "id": submit.call_id,
        "workspace_id": submit.workspace_id,
        "agent_id": submit.agent_id,
        "session_id": submit.session_id,
        "turn_id": submit.turn_id,
        "tool_version_id": tool.version_id,
        "policy_id": tool.policy_id,
        "tool": tool.name,
        "tool_call_id": submit.tool_call_id,
        "model_step": submit.model_step,
        "position": submit.position,
        "binding_epoch": epoch,
        "arguments": digest.arguments,
        "arguments_received": received if received != digest.arguments else None,
        "arguments_sha256": digest.sha256,
        "idempotency_key": submit.idempotency_key,
        "api_key_id": submit.api_key_id,
        "effect_key": key,
        "template_key": key if tool.names_intents else None,
        "prompt_tokens": submit.prompt_tokens,
        "traceparent": submit.traceparent,
        "recovery_class": str(tool.policy.recovery_class),
        "queue": tool.queue,
        "attempts_allowed": tool.policy.retry.attempts,
    }


def ring(new: NewCall) -> None:
    """Date the second ring, for a call that waits for a worker."""
    if new.state is CallState.SCHEDULED:
        new.row["ring_at"] = dispatch.RING_AGAIN_S[0]


def order_of(new: NewCall) -> tuple[str, ...]:
    """Two batches with the same names must come to each unique key in the same order."""
    name = ("idempotency_key", "session_id", "turn_id", "model_step", "position", "tool_call_id")
    return tuple(str(new.row[each] or "") for each in name)
