"""What the pages of tools show: the class that is trusted beside the hints as received, all
time-outs side by side, how the last calls went, breaker and switch. Reads only.

Every list here costs the same queries however many tools there are.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, F

from ledger.models import Gate, Policy, Tool, ToolCall, ToolVersion
from ledger.policies import CallPolicy
from ledger.vocabulary import BreakerState, CallState, GateKind, GateReason
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
    """How the newest calls of a tool went: numbers, and shares of those that are settled."""

    calls: int = 0
    succeeded: int = 0
    not_well: int = 0
    in_doubt: int = 0

    @property
    def succeeded_share(self) -> str:
        """Percent of the calls; a dash where there is none. Never rounded up to all."""
        return f"{self.succeeded * 100 // self.calls} %" if self.calls else "–"


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
    def is_stopped(self) -> bool:
        """Whether no new attempt begins: switched off, or its breaker is not closed."""
        off = self.tool.switched_off_at is not None
        return off or (self.breaker is not None and self.breaker.state is not BreakerState.CLOSED)


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

    @property
    def is_closed(self) -> bool:
        return self.breaker.state is BreakerState.CLOSED


def breakers(workspace_id: UUID, *, tool: str = "") -> list[BreakerShown]:
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
        BreakerShown(each, gates.get((each.kind, each.name)), changes[each.id][:5])
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


def detail(workspace_id: UUID, row: Row) -> dict[str, Any]:
    """What the page of one tool shows beside its row."""
    tool = row.tool
    incidents = Incident.objects.filter(workspace=workspace_id, closed_at=None)
    return {
        "row": row,
        "breakers": breakers(workspace_id, tool=tool.name),
        "versions": list(tool.versions.order_by("-number")[:VERSIONS_SHOWN]),
        "policies": policy_versions(tool),
        "presses": list(tool.switches.order_by("-id")[:5]),
        "incidents": list(
            incidents.filter(call__tool=tool.name).select_related("call").order_by("opened_at")[:10]
        ),
        "times": times_of(row.policy),
    }


def times_of(policy: CallPolicy) -> list[tuple[str, float]]:
    """The four time-outs, by the words of the manual, in seconds."""
    times = policy.timeouts
    return [
        ("schedule-to-start", times.schedule_to_start_s),
        ("start-to-close", times.start_to_close_s),
        ("schedule-to-close", times.schedule_to_close_s),
        ("heartbeat", times.heartbeat_s),
    ]
