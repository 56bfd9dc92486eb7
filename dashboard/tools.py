"""What the pages of tools show: the class that is trusted beside the hints as received, all
time-outs side by side, how the last calls went, breaker and switch. Reads only.

Every list here costs the same queries however many tools there are.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F
from django.template.defaultfilters import pluralize

from ledger.models import Gate, Policy, Tool, ToolCall, ToolVersion
from ledger.policies import CallPolicy
from ledger.vocabulary import (
    SETTLED,
    BreakerState,
    CallState,
    GateKind,
    GateReason,
    RecoveryClass,
)
from recovery import advice, rehearsals
from recovery.models import Breaker, BreakerChange, Incident, Trial

WINDOW = 10_000
"""How many of the newest calls of the workspace the rates are counted among."""
KNOWN_HINTS = {"readOnlyHint": "read-only", "destructiveHint": "destructive",
               "idempotentHint": "idempotent", "openWorldHint": "open world"}  # fmt: skip
"""The hints that the protocol of tool servers names (MCP, ToolAnnotations)."""
SHOWN = 200
VERSIONS_SHOWN = 20
NOT_WELL = (CallState.FAILED, CallState.EXPIRED)
IN_DOUBT = (CallState.INTERRUPTED, CallState.AMBIGUOUS, CallState.ABANDONED)


@dataclass(frozen=True, slots=True)
class Rates:
    """How the newest calls of a tool went: numbers, and the share of the settled that succeeded."""

    calls: int = 0
    settled: int = 0
    succeeded: int = 0
    not_well: int = 0
    in_doubt: int = 0

    @property
    def succeeded_share(self) -> str:
        """Percent of the settled calls; a dash where there is none. Never rounded up to all."""
        if not self.settled:
            return "–"
        most = 100 if self.succeeded == self.settled else 99
        return f"{min(most, round(100 * self.succeeded / self.settled))} %"


@dataclass(frozen=True, slots=True)
class Hint:
    """One annotation as it came from the tool's server."""

    name: str
    value: str

    @property
    def short(self) -> str:
        """A known hint in words, such as `not read-only`; empty for another one."""
        word = KNOWN_HINTS.get(self.name)
        if word is None or self.value not in ("True", "False"):
            return ""
        return word if self.value == "True" else f"not {word}"

    @property
    def text(self) -> str:
        """The hint in words where they are known, else as it came."""
        return self.short or f"{self.name} {self.value}"


@dataclass(frozen=True, slots=True)
class Time:
    """A time-out: our word for it, Temporal's term where that is another one, and its length."""

    word: str
    term: str
    seconds: float = 0.0


TIMES = {
    "schedule_to_start_s": Time("Time to start", "schedule-to-start"),
    "start_to_close_s": Time("Per attempt", "start-to-close"),
    "schedule_to_close_s": Time("Over all", "schedule-to-close"),
    "heartbeat_s": Time("Heartbeat", ""),
}
"""The four time-outs, by their names in a policy."""


@dataclass(frozen=True, slots=True)
class Stands:
    """Whether new attempts of a tool begin, in words; without a colour where they do."""

    text: str
    family: str = ""


ON_BREAKER = {
    BreakerState.CLOSED: Stands("on"),
    BreakerState.OPEN: Stands("on, breaker open", "failed"),
    BreakerState.TRIAL: Stands("on, breaker on trial", "machine"),
}
SWITCHED_OFF = Stands("switched off", "closed")
NO_PROBE = "none: after the boundary a person decides"
NO_PROBE_TO_READ = "not needed: it only reads"


@dataclass(frozen=True, slots=True)
class Row:
    """One tool as it holds now. `trusts_more` is a sentence, or empty."""

    tool: Tool
    version: ToolVersion
    stored: Policy
    policy: CallPolicy
    hints: list[Hint]
    trusts_more: str
    rates: Rates
    breaker: Breaker | None

    @property
    def hinted(self) -> str:
        """The known hints in words, and how many others there are; empty without any."""
        known = [hint.short for hint in self.hints if hint.short]
        others = len(self.hints) - len(known)
        return ", ".join(known + ([f"{others} more"] if others else []))

    @property
    def stands(self) -> Stands:
        """Its switch, and its breaker where that lets nothing pass."""
        if self.tool.switched_off_at is not None:
            return SWITCHED_OFF
        return ON_BREAKER[self.breaker.state if self.breaker else BreakerState.CLOSED]

    @property
    def is_stopped(self) -> bool:
        """Whether no new attempt begins: switched off, or its breaker is not closed."""
        return self.stands != ON_BREAKER[BreakerState.CLOSED]

    @property
    def times(self) -> list[Time]:
        """The four time-outs of its policy."""
        timeouts = self.policy.timeouts
        return [replace(time, seconds=getattr(timeouts, name)) for name, time in TIMES.items()]

    @property
    def runbooks(self) -> list[tuple[str, str]]:
        """The failure points that have a runbook of their own, with it."""
        named = asdict(self.policy.runbooks).items()
        return [(point, runbook) for point, runbook in named if runbook]

    @property
    def probing(self) -> str:
        """Whether the outside is asked whether an effect happened, in words."""
        probe = self.policy.probe
        if probe is None:
            reads = self.policy.recovery_class is RecoveryClass.READ_ONLY
            return NO_PROBE_TO_READ if reads else NO_PROBE
        if not self.version.probes:
            return "in the policy, but this version of the tool cannot be asked"
        times = f"{probe.attempts} time{pluralize(probe.attempts)}"
        believed = "believed" if probe.authoritative else "not believed"
        return f"asked at most {times}; its no is {believed}"


def rows(workspace_id: UUID, name: str = "") -> list[Row]:
    """The tools of a workspace by name, or the one of this name."""
    tools = Tool.objects.filter(workspace=workspace_id, version__gt=0).order_by("name")
    if name:
        tools = tools.filter(name=name)
    found = list(tools[:SHOWN])
    ids = [each.id for each in found]
    versions = ToolVersion.objects.filter(tool__in=ids, number=F("tool__version"))
    policies = Policy.objects.filter(tool__in=ids, number=F("tool__policy_version"))
    breakers = Breaker.objects.filter(workspace=workspace_id, kind=GateKind.TOOL)
    return _joined(
        found,
        {each.tool_id: each for each in versions},
        {each.tool_id: each for each in policies},
        {each.name: each for each in breakers},
        rates(workspace_id),
    )


def _joined(
    tools: list[Tool],
    versions: Mapping[UUID, ToolVersion],
    policies: Mapping[UUID, Policy],
    breakers: Mapping[str, Breaker],
    counted: Mapping[str, Rates],
) -> list[Row]:
    joined = []
    for tool in tools:
        version, stored = versions[tool.id], policies[tool.id]
        policy = stored.call_policy
        joined.append(
            Row(
                tool=tool,
                version=version,
                stored=stored,
                policy=policy,
                hints=[Hint(str(k), str(v)) for k, v in sorted(version.annotations.items())],
                trusts_more=advice.trusts_more(policy.recovery_class, version.annotations),
                rates=counted.get(tool.name, Rates()),
                breaker=breakers.get(tool.name),
            )
        )
    return joined


def rates(workspace_id: UUID) -> dict[str, Rates]:
    """The rates of each tool among the newest calls of a workspace."""
    mine = ToolCall.objects.filter(workspace=workspace_id)
    newest = ToolCall.objects.filter(id__in=mine.order_by("-id").values("id")[:WINDOW])
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for tool, state, number in newest.values_list("tool", "state").annotate(Count("id")):
        counted[tool][state] += number
    return {
        tool: Rates(
            calls=states.total(),
            settled=sum(states[each] for each in SETTLED),
            succeeded=states[CallState.SUCCEEDED],
            not_well=sum(states[each] for each in NOT_WELL),
            in_doubt=sum(states[each] for each in IN_DOUBT),
        )
        for tool, states in counted.items()
    }


@dataclass(frozen=True, slots=True)
class BreakerShown:
    """One breaker: how it stands, its gate's next trial, and what changed it last."""

    breaker: Breaker
    gate: Gate | None
    changes: list[BreakerChange]
    now: datetime

    @property
    def word(self) -> str:
        """How it stands: open, closed, or on trial."""
        state = self.breaker.state
        return "on trial" if state is BreakerState.TRIAL else str(state)

    @property
    def is_trial_due(self) -> bool:
        """Whether its time is over: the next call passes, and its end decides."""
        due = self.gate.trial_at if self.gate else None
        return due is not None and due <= self.now

    @property
    def is_closed(self) -> bool:
        return self.breaker.state is BreakerState.CLOSED


def breakers(workspace_id: UUID, now: datetime, *, tool: str = "") -> list[BreakerShown]:
    """The breakers of a workspace, or of one tool; those that are not closed first."""
    found = Breaker.objects.filter(workspace=workspace_id).order_by("-since")
    if tool:
        found = found.filter(kind=GateKind.TOOL, name=tool)
    listed = list(found[:SHOWN])
    gates = {
        (each.kind, each.name): each
        for each in Gate.objects.filter(workspace=workspace_id, why=GateReason.BREAKER_OPEN)
    }
    changes = defaultdict(list)
    for each in BreakerChange.objects.filter(breaker__in=listed).order_by("-id")[:SHOWN]:
        changes[each.breaker_id].append(each)
    shown = [
        BreakerShown(each, gates.get((each.kind, each.name)), changes[each.id][:5], now)
        for each in listed
    ]
    return sorted(shown, key=lambda each: each.is_closed)


@dataclass(frozen=True, slots=True)
class VersionShown:
    """One version of a policy, with what the trial before its saving said, where there is one."""

    policy: Policy
    trial: Trial | None
    is_active: bool

    @property
    def repeated(self) -> int:
        """How many effects that had happened it would have repeated."""
        return int(self.trial.counts["repeated"]) if self.trial else 0


def policy_versions(tool: Tool) -> list[VersionShown]:
    """The newest versions of a tool's policy, the newest first."""
    found = list(Policy.objects.filter(tool=tool).order_by("-number")[:VERSIONS_SHOWN])
    tried = rehearsals.of_versions(found)
    return [
        VersionShown(each, tried.get(each.number), each.number == tool.policy_version)
        for each in found
    ]


def detail(workspace_id: UUID, row: Row, now: datetime) -> dict[str, Any]:
    """What the page of one tool shows beside its row."""
    tool = row.tool
    incidents = Incident.objects.filter(workspace=workspace_id, closed_at=None)
    return {
        "row": row,
        "breakers": breakers(workspace_id, now, tool=tool.name),
        "versions": list(tool.versions.order_by("-number")[:VERSIONS_SHOWN]),
        "policies": policy_versions(tool),
        "presses": list(tool.switches.order_by("-id")[:5]),
        "incidents": list(
            incidents.filter(call__tool=tool.name).select_related("call").order_by("opened_at")[:10]
        ),
    }
