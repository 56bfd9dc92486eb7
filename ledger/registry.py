"""Tools and their policies: every change makes a new version with an author and grounds (R24)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import jsonschema_rs
from django.db import transaction

from ledger import dispatch, gates, registered
from ledger.conditions import Seen
from ledger.errors import Invalid, NotFound, PolicyLoosened
from ledger.models import Policy, Switch, Tool, ToolVersion, Workspace
from ledger.models.fields import ClockTimestamp
from ledger.policies import CallPolicy, Finding, lint, loosened, policy_for
from ledger.providers import provider_of
from ledger.strictjson import is_identifier
from ledger.vocabulary import EffectKind, GateKind, GateReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who changes something, and why."""

    name: str
    grounds: str
    person_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a tool is, as an admin or its code declares it."""

    name: str
    executor: str
    config: Mapping[str, Any] = field(default_factory=dict)
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    effect_kinds: Sequence[str] = ()
    annotations: Mapping[str, Any] = field(default_factory=dict)
    handles: bool = False
    probes: bool = False
    provider: str = ""

    def check(self) -> None:
        """Raise Invalid for what cannot be stored or run."""
        if not is_identifier(self.name):
            raise Invalid(detail="A tool's name has 1 to 128 letters, digits and _ . : -")
        if self.executor not in ToolVersion.EXECUTORS:
            raise Invalid(
                detail=f"{self.executor!r} is no executor; take one of "
                f"{', '.join(ToolVersion.EXECUTORS)}."
            )
        if self.provider and not is_identifier(self.provider):
            raise Invalid(detail="A provider's name has 1 to 128 letters, digits and _ . : -")
        unknown = set(self.effect_kinds) - set(EffectKind)
        if unknown:
            raise Invalid(detail=f"Unknown effect kinds: {', '.join(sorted(unknown))}.")
        try:
            if self.input_schema:
                jsonschema_rs.validator_for(dict(self.input_schema), offline=True)
        except Exception as error:
            raise Invalid(detail=f"The input schema does not compile: {error}.") from error


def put(
    *,
    workspace: Workspace,
    declaration: Declaration,
    policy: Mapping[str, Any],
    by: Author,
    may_loosen: bool = True,
) -> Tool:
    """Register a tool, or a new version of it where something differs; the same twice is one.

    Raises Invalid, UnsafePolicy, and PolicyLoosened for a policy that is less careful than the
    one in force unless it `may_loosen`.
    """
    declaration.check()
    with transaction.atomic():
        Tool.objects.get_or_create(workspace=workspace, name=declaration.name)
        tool = Tool.objects.select_for_update().get(workspace=workspace, name=declaration.name)
        gave_handles = tool.gives_handles
        _put_version(tool, declaration, by)
        if policy or tool.policy_version == 0:
            if not may_loosen:
                _refuse_to_loosen(tool, policy)
            _put_policy(tool, policy, by)
        elif gave_handles and not declaration.handles:
            # The policy in force may live by them.
            policy_for(tool.policies.get(number=tool.policy_version).document, gives_handles=False)
    registered.forget()
    return tool


def _refuse_to_loosen(tool: Tool, document: Mapping[str, Any]) -> None:
    """Raise PolicyLoosened where a document is less careful than the policy in force."""
    present = Policy.objects.filter(tool=tool, number=tool.policy_version).first()
    loosens = present and loosened(present.call_policy, policy_for(dict(document)))
    if loosens:
        raise PolicyLoosened(tool=tool.name, loosens=", ".join(loosens))


def _put_version(tool: Tool, declaration: Declaration, by: Author) -> None:
    values = {
        "executor": declaration.executor,
        "config": dict(declaration.config),
        "description": declaration.description,
        "input_schema": dict(declaration.input_schema),
        "effect_kinds": sorted(declaration.effect_kinds),
        "annotations": dict(declaration.annotations),
        "handles": declaration.handles,
        "probes": declaration.probes,
        "provider": provider_of(declaration.provider, declaration.config),
    }
    present = ToolVersion.objects.filter(tool=tool, number=tool.version).first()
    if present and all(getattr(present, name) == value for name, value in values.items()):
        return
    tool.version += 1
    ToolVersion.objects.create(
        tool=tool, workspace_id=tool.workspace_id, number=tool.version, **values, **_signed(by)
    )
    tool.save(update_fields=["version"])


def _signed(by: Author) -> dict[str, Any]:
    if not by.grounds.strip():
        raise Invalid(detail="Every change needs grounds: say why in one sentence.")
    return {"author_id": by.person_id, "author_name": by.name, "grounds": by.grounds}


def put_policy(
    *,
    workspace_id: UUID,
    tool_name: str,
    document: Mapping[str, Any],
    by: Author,
    seen: Seen,
) -> tuple[Policy, list[Finding]]:
    """Write a new version of a tool's policy; open calls keep theirs (R24).

    `seen` is the version that the author looked at. Raises PreconditionRequired without one,
    VersionConflict if another holds by now, UnsafePolicy where the linter finds an error. Returns
    the warnings too.
    """
    with transaction.atomic():
        tool = (
            Tool.objects.select_for_update().filter(workspace=workspace_id, name=tool_name).first()
        )
        if tool is None:
            raise NotFound(noun="tool")
        look_again(tool, seen)
        policy = _put_policy(tool, document, by)
    registered.forget()
    return policy, lint(policy.call_policy)


def look_again(tool: Tool, seen: Seen) -> None:
    """Raise PreconditionRequired or VersionConflict unless the version that was seen holds."""
    given, present = seen.needed("policy", "version"), tool.policy_version
    if given != present:
        current = {"version": present, "etag": f'"{present}"'}
        raise seen.conflict(given=given, present=present, current=current)


def _put_policy(tool: Tool, document: Mapping[str, Any], by: Author) -> Policy:
    call_policy: CallPolicy = policy_for(dict(document), gives_handles=tool.gives_handles)
    stored = call_policy.to_json()
    present = Policy.objects.filter(tool=tool, number=tool.policy_version).first()
    declared = "recovery_class" in document
    if present is not None and (present.whole, present.declared) == (stored, declared):
        return present
    tool.policy_version += 1
    policy = Policy.objects.create(
        tool=tool,
        workspace_id=tool.workspace_id,
        number=tool.policy_version,
        recovery_class=call_policy.recovery_class,
        declared=declared,
        document=stored,
        **_signed(by),
    )
    tool.save(update_fields=["policy_version"])
    return policy


def switch(*, workspace_id: UUID, tool_name: str, on: bool, by: Author) -> Tool:
    """Switch a tool off or on: while off, new calls are rejected and nothing new is crossed.

    No new attempt begins either; every press is kept with who, why and when (R50).
    """
    signed = _signed(by)
    with transaction.atomic():
        tools = Tool.objects.select_for_update().filter(workspace=workspace_id)
        tool = tools.filter(name=tool_name).first()
        if tool is None:
            raise NotFound(noun="tool")
        _press(tool, on, by)
        tools.filter(id=tool.id).update(
            switched_off_at=None if on else ClockTimestamp(),
            switched_off_grounds="" if on else signed["grounds"],
        )
        tool.refresh_from_db()
    registered.forget()
    return tool


def _press(tool: Tool, on: bool, by: Author) -> None:
    """Keep the press, and put up or lift the gate that claims look at."""
    Switch.objects.create(
        workspace_id=tool.workspace_id, tool=tool, on=on, person_id=by.person_id,
        person_name=by.name, grounds=by.grounds,
    )  # fmt: skip
    (gates.lift if on else gates.close)(
        workspace_id=tool.workspace_id,
        kind=GateKind.TOOL,
        name=tool.name,
        why=GateReason.SWITCHED_OFF,
    )
    if on:
        dispatch.ring_after_commit(("effects", "reads"))
