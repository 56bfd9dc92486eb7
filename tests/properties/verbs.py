"""Every verb that writes, with the scene it needs: what crash points and lock order are tried on.

A scene is one call brought by the product's own verbs to where the verb may be used. `act` is
the verb alone, so that each statement it makes is one of its own.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ledger import (
    attempts,
    calls,
    claims,
    handles,
    pressure,
    registered,
    settlements,
    strictjson,
    submits,
)
from ledger.claims import Claim
from ledger.handles import HandleToStore
from ledger.models import Interrupt, Tool
from ledger.submits import Submit
from ledger.vocabulary import BudgetScope, Cause, Deadline, Meaning, ProbeFinding, RecoveryClass
from ledger.workers import Holder
from recovery import grants, reports, resolutions, stages, watchdog
from recovery.api import intents
from recovery.models import Resolution
from tests import builders
from tests.cast import Acme, as_decider
from tests.recovery import deciding

R = RecoveryClass
CLASSES: tuple[str, ...] = (R.READ_ONLY, R.IDEMPOTENT_WRITE, R.LONG_RUNNING, R.PROVIDER_AUTH,
                            R.SIDE_EFFECT)  # fmt: skip
EFFECTFUL = CLASSES[1:]
INTERRUPTIBLE: tuple[str, ...] = (R.IDEMPOTENT_WRITE, R.LONG_RUNNING, R.SIDE_EFFECT)
UNRESOLVED: tuple[str, ...] = (R.LONG_RUNNING, R.SIDE_EFFECT)
PROBE = {"authoritative": True, "interval_s": 1}


@dataclass
class Scene:
    """One call before a verb: its id, the claim last won for it, its submit."""

    acme: Acme
    call_id: UUID
    worker: Holder
    submit: Submit
    claim: Claim | None = None
    evidence: tuple[UUID, ...] = ()
    resolution: Resolution | None = None

    @property
    def won(self) -> Claim:
        assert self.claim is not None, "nobody claimed this call"
        return self.claim

    @property
    def held(self) -> dict[str, Any]:
        """Call and fence, as the verbs of an attempt take them."""
        return {"call_id": self.call_id, "fence": self.won.fence}


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb, its scene, and what is told to a caller who repeats it.

    `repeats` says that it repeats itself where its line was cut, and answers as if it had not
    been; otherwise its caller does, and `converges` says that this ends as one call would.
    """

    name: str
    state: str
    act: Callable[[Scene], Any]
    classes: tuple[str, ...] = CLASSES
    crossed: bool = True
    prepare: Callable[[Scene], Any] = field(default=lambda scene: None)
    repeats: bool = True
    converges: bool = True

    def __str__(self) -> str:
        return self.name


# Scenes


def scene(verb: Verb, acme: Acme, tool: Tool, worker: Holder) -> Scene:
    """A new call of this tool where `verb` may be used."""
    submit = builders.a_submit(acme, tool, idempotency_key=f"key-{builders.ids.new().hex}")
    if verb.state == "":
        return Scene(acme, submit.call_id, worker, submit)
    crossed = verb.crossed and verb.state == "running" and tool_class(tool) != "read_only"
    call = builders.a_call(
        acme, in_state=verb.state, tool=tool, crossed=crossed,
        idempotency_key=submit.idempotency_key,
    )  # fmt: skip
    made = Scene(acme, call.id, worker, submit, builders._claims.get(call.id))
    builders._to_the_front(call)
    verb.prepare(made)
    return made


def tool_class(tool: Tool) -> str:
    """The recovery class of a tool."""
    return str(tool.policies.get(number=tool.policy_version).call_policy.recovery_class)


def a_tool(acme: Acme, recovery_class: str) -> Tool:
    """A tool of this class; what can be asked afterwards is asked by an authoritative probe."""
    probe = PROBE if recovery_class in INTERRUPTIBLE else None
    return builders.a_tool(acme, recovery_class=recovery_class, probe=probe)


def _past(*deadlines: Deadline) -> Callable[[Scene], None]:
    def prepare(scene: Scene) -> None:
        builders.past(builders.fresh(scene.call_id), *deadlines)

    return prepare


def _polled(scene: Scene) -> None:
    scene.claim = builders.poll(builders.fresh(scene.call_id))


def _probe_due(scene: Scene) -> None:
    """The worker is proven dead and its grace is over, so that a probe's no would count."""
    call = builders.fresh(scene.call_id)
    builders.unlock_denial(call)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    builders.past(call, Deadline.NEXT_STEP)


def _probe_won(scene: Scene) -> None:
    _probe_due(scene)
    scene.claim = builders.claimed(builders.fresh(scene.call_id))


def _probe_answered(scene: Scene) -> None:
    _probe_won(scene)
    probed(scene)
    _past(Deadline.NEXT_STEP)(scene)


def _late(scene: Scene) -> None:
    late_result(scene)
    _past(Deadline.NEXT_STEP)(scene)


def _dead(scene: Scene) -> None:
    builders.end_lease(builders.fresh(scene.call_id), seconds_ago=3600)


# Acts


def claim(queue: str = "") -> Callable[[Scene], list[Any]]:
    """Claim one due attempt; told as the calls that were won."""

    def act(scene: Scene) -> list[Any]:
        own = "reads" if scene.submit.tool.startswith("read_only") else "effects"
        won = claims.claim(queue=queue or own, holder=scene.worker, limit=1)
        return [each.call_id for each in won]

    return act


def record(scene: Scene) -> Any:
    registered.forget()
    pressure.forget()
    answer = submits.record([scene.submit])[0]
    return answer.call_id if isinstance(answer, submits.Recorded) else answer


def cross(scene: Scene) -> bool:
    return attempts.cross(**scene.held) > 0


def heartbeat(scene: Scene) -> Any:
    return attempts.heartbeat(**scene.held, cursor=1, partial=b"half")


def renew(scene: Scene) -> Any:
    return len(attempts.renew(attempt_ids=[scene.won.attempt_id]))


def park(scene: Scene) -> Any:
    return handles.park(**scene.held, handle=_handle(scene))


def store_handle(scene: Scene) -> Any:
    return handles.store_handle(**scene.held, handle=_handle(scene))


def _handle(scene: Scene) -> HandleToStore:
    return HandleToStore(value=f"run-{scene.call_id.hex}")


def release(scene: Scene) -> Any:
    return attempts.release(**scene.held, grounds="The worker drains.")


def settle(scene: Scene) -> Any:
    return _raised(settlements.settle([builders.settlement(scene.won)])[0])


def _raised(answer: None | Exception) -> None:
    if answer is not None:
        raise answer


def ended(cause: Cause, means: Meaning) -> Callable[[Scene], Any]:
    return lambda scene: reports.ended(claim=scene.won, cause=cause, means=means)


def probed(scene: Scene) -> Any:
    return reports.probed(claim=scene.won, finding=ProbeFinding.DID_NOT_HAPPEN)


def _decided(answer: str, then: str = "") -> Callable[[Scene], None]:
    """A person has decided, and the delay in which it can be taken back is over."""

    def prepare(scene: Scene) -> None:
        call = builders.fresh(scene.call_id)
        builders.unlock_denial(call)
        deciding.decide(scene.acme, call, answer, then)
        deciding.fall_due(call)

    return prepare


def _found(scene: Scene) -> None:
    """A person has looked outside and put on the file what is there."""
    call = builders.fresh(scene.call_id)
    builders.unlock_denial(call)
    olga = as_decider(scene.acme.olga)
    scene.evidence = (deciding.found(call, "did_not_happen", olga).id,)


def _requested(scene: Scene) -> None:
    """A decision waits for a second person."""
    builders.unlock_denial(builders.fresh(scene.call_id))
    scene.resolution = deciding.decide(
        scene.acme, builders.fresh(scene.call_id), "did_not_happen", "close"
    )


def _twin_over(scene: Scene) -> None:
    """The call that a twin waits for is settled."""
    other = builders.fresh(Interrupt.objects.get(call=scene.call_id).waits_for_id)
    calls.cancel(workspace_id=other.workspace_id, agent_id=other.agent_id, call_id=other.id)


def pressed(scene: Scene, name: str, deed: Callable[[], Resolution]) -> Any:
    """A person's deed as the API does it: a press whose answer was lost is answered the same."""
    kept, _ = intents.kept(
        as_decider(scene.acme.olga), f"/{name}/{scene.call_id}", "press", "0" * 64,
        lambda: {"stage": str(stages.of(deed()))}, 201,
    )  # fmt: skip
    return json.loads(kept.answer)


def decide(scene: Scene) -> Any:
    call = builders.fresh(scene.call_id)
    return pressed(scene, "decide", lambda: deciding.decide(
        scene.acme, call, "did_not_happen", "close", evidence=scene.evidence
    ))  # fmt: skip


def take_back(scene: Scene) -> Any:
    assert scene.resolution is not None
    id_, olga = scene.resolution.id, as_decider(scene.acme.olga)
    return pressed(scene, "take back", lambda: resolutions.take_back(
        resolution_id=id_, grounds="The provider's list was an old one.", by=olga
    ))  # fmt: skip


def grant(scene: Scene) -> Any:
    wanted = grants.Wanted(
        scope=BudgetScope.CALL, key=str(scene.call_id), attempts=1, grounds="It is worth one more."
    )
    made, _ = grants.grant(
        workspace_id=scene.acme.workspace.id, wanted=wanted, person=scene.acme.olga,
        key=f"press-{scene.call_id}",
    )  # fmt: skip
    return made.attempts


def late_result(scene: Scene) -> Any:
    return settlements.file_late(
        claim=scene.won, stored=strictjson.storable({"late": True}),
        media_type="application/json", cause=None,
    )  # fmt: skip


def cancel(scene: Scene) -> Any:
    call = calls.cancel(
        workspace_id=scene.acme.workspace.id, agent_id=scene.acme.ada.id, call_id=scene.call_id
    )
    return call.state


def carry_out(scene: Scene) -> Any:
    return resolutions.carry_out_due()


D = Deadline
# A second sweep takes the step that the first one has dated.
SWEEP: dict[str, Any] = {
    "act": lambda scene: watchdog.fire_due(), "repeats": False, "converges": False,
}  # fmt: skip

VERBS: tuple[Verb, ...] = (
    Verb(name="submit", state="", act=record, repeats=False),
    Verb(name="claim", state="scheduled", act=claim(), repeats=False, converges=False),
    Verb(name="cross", state="running", crossed=False, classes=EFFECTFUL, act=cross),
    # Partial output is kept at least once: a repeated heartbeat brings its piece again.
    Verb(name="heartbeat", state="running", act=heartbeat, converges=False),
    Verb(name="renew", state="running", act=renew),
    Verb(name="store handle", state="running", act=store_handle),
    Verb(name="park", state="running", act=park),
    Verb(name="release", state="running", crossed=False, act=release),
    Verb(name="settle", state="running", act=settle),
    Verb(name="report unknown", state="running",
         act=ended(Cause.CONNECTION_LOST, Meaning.UNKNOWN)),
    Verb(name="report refused", state="running", act=ended(Cause.RATE_LIMITED, Meaning.REFUSED)),
    Verb(name="report error", state="running", act=ended(Cause.TOOL_ERROR, Meaning.KNOWN)),
    Verb(name="cancel", state="scheduled", act=cancel),
    Verb(name="ask for cancellation", state="running", act=cancel),
    Verb(name="claim poll", state="parked", prepare=_past(D.NEXT_POLL), act=claim("control"),
         repeats=False, converges=False),
    Verb(name="poll not done", state="parked", prepare=_polled, act=park),
    Verb(name="poll done", state="parked", prepare=_polled, act=settle),
    Verb(name="lose handle", state="parked", prepare=_polled,
         act=ended(Cause.VANISHED, Meaning.UNKNOWN)),
    Verb(name="claim probe", state="interrupted", classes=INTERRUPTIBLE, prepare=_probe_due,
         act=claim("control"), repeats=False, converges=False),
    Verb(name="answer probe", state="interrupted", classes=INTERRUPTIBLE, prepare=_probe_won,
         act=probed),
    Verb(name="file late", state="interrupted", classes=INTERRUPTIBLE, act=late_result),
    Verb(name="sweep: lose", state="running", prepare=_past(D.HEARTBEAT), **SWEEP),
    Verb(name="sweep: step", state="interrupted", classes=INTERRUPTIBLE,
         prepare=_past(D.NEXT_STEP), **SWEEP),
    Verb(name="sweep: deny", state="interrupted", classes=INTERRUPTIBLE, prepare=_probe_answered,
         **SWEEP),
    Verb(name="sweep: adopt", state="interrupted", classes=INTERRUPTIBLE, prepare=_late, **SWEEP),
    Verb(name="sweep: escalate", state="interrupted", classes=INTERRUPTIBLE,
         prepare=_past(D.RECOVERY_WINDOW), **SWEEP),
    Verb(name="sweep: remind", state="ambiguous", classes=UNRESOLVED, prepare=_past(D.REVIEW),
         **SWEEP),
    Verb(name="decide", state="ambiguous", classes=UNRESOLVED, prepare=_found, act=decide),
    Verb(name="take back", state="ambiguous", classes=UNRESOLVED, prepare=_requested,
         act=take_back),
    Verb(name="grant an attempt", state="backing_off", act=grant),
    Verb(name="cancel a held call", state="paused", classes=EFFECTFUL, act=cancel),
    Verb(name="sweep: end a hold", state="paused", classes=EFFECTFUL, prepare=_twin_over,
         act=lambda scene: watchdog.end_holds(), repeats=False),
    Verb(name="carry out a denial", state="ambiguous", classes=UNRESOLVED, repeats=False,
         prepare=_decided("did_not_happen", "close"), act=carry_out),
    Verb(name="carry out a repeat", state="ambiguous", classes=UNRESOLVED, repeats=False,
         prepare=_decided("did_not_happen", "repeat"), act=carry_out),
    Verb(name="carry out a statement", state="ambiguous", classes=UNRESOLVED, repeats=False,
         prepare=_decided("happened"), act=carry_out),
    Verb(name="sweep: publish", state="backing_off", prepare=_past(D.BACKOFF), **SWEEP),
    Verb(name="sweep: expire", state="scheduled", prepare=_past(D.SCHEDULE_TO_START), **SWEEP),
    Verb(name="sweep: prove dead", state="interrupted", classes=INTERRUPTIBLE, prepare=_dead,
         act=lambda scene: watchdog.prove_dead(), repeats=False),
    Verb(name="sweep: grant a lease", state="running", repeats=False,
         act=lambda scene: watchdog.grant_one_lease() > 0),
)  # fmt: skip
