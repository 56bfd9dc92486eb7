"""Tool versions and policies by id: immutable, so what is read once holds for ever."""

from collections.abc import Sequence
from uuid import UUID

from ledger.models import (
    Policy,
    ToolCall,
    ToolVersion,
)
from ledger.policies import CallPolicy

_versions: dict[UUID, ToolVersion] = {}
_policies: dict[UUID, CallPolicy] = {}


def read(wanted: Sequence[tuple[UUID, UUID]]) -> list[tuple[ToolVersion, CallPolicy]]:
    """The version and the policy of each pair of ids (tool version, policy)."""
    unread = {version_id for version_id, _ in wanted} - _versions.keys()
    if unread:
        _versions.update(ToolVersion.objects.in_bulk(unread))
    unread = {policy_id for _, policy_id in wanted} - _policies.keys()
    if unread:
        found = Policy.objects.in_bulk(unread)
        _policies.update({id_: policy.call_policy for id_, policy in found.items()})
    return [(_versions[version_id], _policies[policy_id]) for version_id, policy_id in wanted]


def policy_of(call: ToolCall) -> CallPolicy:
    """The policy that a call keeps."""
    return read([(call.tool_version_id, call.policy_id)])[0][1]
