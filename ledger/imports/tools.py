"""Under which version and policy an imported call is kept.

A call of a registered tool is that tool's, under its present policy. Everything else is kept under
one tool of the workspace that nobody can call: its version and its policy have the number 0, its
name is none that a tool may have, and it is a side effect, so that a person is asked and nothing
is repeated (decision 0029). The call keeps the name by which the model called it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

import jsonschema_rs
from django.db.models import F

from ledger.effect_keys import effect_key
from ledger.errors import Invalid
from ledger.models import Policy, Tool, ToolVersion
from ledger.policies import CallPolicy, policy_for
from ledger.vocabulary import RecoveryClass

KEPT = "(imported)"
"""The name of the tool behind calls that no registered tool can answer for."""
GROUNDS = "An imported conversation names tools that this workspace does not have."


@dataclass(frozen=True)
class Keeping:
    """A version and a policy, as a call is kept under them."""

    version_id: UUID
    policy_id: UUID
    policy: CallPolicy
    input_schema: Mapping[str, Any]
    registered: bool = True

    @property
    def reads(self) -> bool:
        return self.policy.recovery_class is RecoveryClass.READ_ONLY

    @cached_property
    def _validator(self) -> Any:
        return jsonschema_rs.validator_for(dict(self.input_schema), offline=True)

    def takes(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the tool could be called with these arguments."""
        return not self.input_schema or bool(self._validator.is_valid(dict(arguments)))

    def effect_key(self, call_id: UUID, arguments: Mapping[str, Any]) -> str | None:
        """The key of the call's effect; None where the policy's template finds no argument."""
        try:
            return effect_key(self.policy, call_id, arguments)
        except Invalid:
            return None


@dataclass(frozen=True, slots=True)
class Keepings:
    """What the calls of one import are kept under: registered tools by name, else `other`."""

    by_name: Mapping[str, Keeping]
    other: Keeping

    def of(self, name: str, arguments: Mapping[str, Any], *, answered: bool) -> Keeping:
        """The keeping of one call.

        An unanswered call is its tool's only if the tool could be called so: recovery may
        call it, and must never do that with arguments that it was not asked for (R84).
        """
        found = self.by_name.get(name, self.other)
        return found if answered or found.takes(arguments) else self.other


def keepings(workspace_id: UUID, names: Collection[str]) -> Keepings:
    """Read what the calls of these names are kept under; makes the common tool if it is missing."""
    found = Tool.objects.filter(workspace=workspace_id, name__in=names, version__gt=0)
    tools = {tool.id: tool.name for tool in found}
    policies = {
        policy.tool_id: policy
        for policy in Policy.objects.filter(tool__in=tools, number=F("tool__policy_version"))
    }
    versions = ToolVersion.objects.filter(tool__in=tools, number=F("tool__version"))
    by_name = {
        tools[version.tool_id]: _keeping(version, policies[version.tool_id]) for version in versions
    }
    return Keepings(by_name, _other(workspace_id))


def _keeping(version: ToolVersion, policy: Policy) -> Keeping:
    schema = version.input_schema
    return Keeping(version.id, policy.id, policy.call_policy, schema, registered=version.number > 0)


def _other(workspace_id: UUID) -> Keeping:
    tool, _ = Tool.objects.get_or_create(workspace_id=workspace_id, name=KEPT)
    signed = {"author_name": "Clearhouse", "grounds": GROUNDS}
    same = {"tool": tool, "workspace_id": workspace_id, "number": 0}
    version, _ = ToolVersion.objects.get_or_create(**same, defaults={"executor": "none", **signed})
    policy = policy_for({})
    values = {
        "recovery_class": policy.recovery_class, "declared": False, "document": policy.to_json()
    }  # fmt: skip
    kept, _ = Policy.objects.get_or_create(**same, defaults=values | signed)
    return _keeping(version, kept)
