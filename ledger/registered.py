"""Tools as they hold now: the version, the policy and the gates that a submit is judged by.

Versions and policies are immutable and kept for ever; which of them holds, and which gates stand
before a tool, is read again after a second. Whoever changes it calls `forget`.
"""

import difflib
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import jsonschema_rs

from ledger import gates
from ledger.errors import Invalid, ToolUnknown
from ledger.gates import Closed
from ledger.models import Tool
from ledger.policies import CallPolicy
from ledger.vocabulary import EffectKind, RecoveryClass

Named = tuple[UUID, str]
"""A tool of a workspace, by its name."""

LOCAL_KINDS = frozenset({EffectKind.FILE, EffectKind.SUBPROCESS, EffectKind.PACKAGE_INSTALL})
"""Effects on the machine that the session runs on."""

REMEMBERED_S = 1.0
_remembered: dict[Named, tuple[float, "Registered"]] = {}
_versions: dict[tuple[UUID, int, int], "Registered"] = {}


@dataclass(frozen=True, slots=True)
class Registered:
    """A tool as it holds now: its version, its policy, and the validator of its arguments."""

    name: str
    version_id: UUID
    version: int
    policy_id: UUID
    policy_version: int
    policy: CallPolicy
    validator: Any
    executor: str = "python"
    provider: str = ""
    effect_kinds: frozenset[str] = frozenset()
    gates: tuple[Closed, ...] = ()

    @property
    def reads(self) -> bool:
        return self.policy.recovery_class is RecoveryClass.READ_ONLY

    @property
    def names_intents(self) -> bool:
        """Whether its policy's template finds the same intent in any session."""
        return bool(self.policy.key_template)

    @property
    def is_remote(self) -> bool:
        """Whether a session's directory and host are nothing to it."""
        return is_remote(self.executor, self.effect_kinds)

    @property
    def queue(self) -> str:
        """Reads run many at a time; all else one attempt per process, under the self-fence."""
        return "reads" if self.reads else "effects"


def is_remote(executor: str, effect_kinds: Collection[str]) -> bool:
    """Whether a tool works elsewhere, so that a session's directory and host are nothing to it.

    A command never does. A function of ours does where it declares effects and none of them is
    local; one that declares none may read files. What was imported runs nowhere (`none`)
    (semantics, section 17).
    """
    if executor == "command" or LOCAL_KINDS & set(effect_kinds):
        return False
    return executor in ("http", "none") or bool(effect_kinds)


def named(wanted: Collection[Named]) -> dict[Named, Registered]:
    """The tools of these names; one that is not registered is not there."""
    now = time.monotonic()
    unread = [key for key in wanted if key not in _remembered or _remembered[key][0] < now]
    if unread:
        found = Tool.objects.filter(
            workspace__in={workspace_id for workspace_id, _ in unread},
            name__in={name for _, name in unread},
            version__gt=0,  # what imports refer to was never registered, so nobody may call it
        )
        standing = gates.standing(workspace_id for workspace_id, _ in unread)
        for tool in found:
            key = (tool.workspace_id, tool.name)
            _remembered[key] = (now + REMEMBERED_S, _as_registered(tool, standing))
    return {key: _remembered[key][1] for key in wanted if key in _remembered}


def forget() -> None:
    """Read the tools again at the next submit."""
    _remembered.clear()


def _as_registered(tool: Tool, standing: Mapping[gates.Place, list[Closed]]) -> Registered:
    key = (tool.id, tool.version, tool.policy_version)
    registered = _versions.get(key)
    if registered is None:
        # Versions and policies are immutable, so what is read once holds for ever.
        registered = _versions[key] = _load(tool)
    closed = gates.before(standing, tool.workspace_id, tool.name, registered.provider)
    return replace(registered, gates=closed) if closed else registered


def _load(tool: Tool) -> Registered:
    version = tool.versions.get(number=tool.version)
    policy = tool.policies.get(number=tool.policy_version)
    return Registered(
        name=tool.name,
        version_id=version.id,
        version=version.number,
        policy_id=policy.id,
        policy_version=policy.number,
        policy=policy.call_policy,
        validator=_validator(version.input_schema),
        executor=version.executor,
        provider=version.provider,
        effect_kinds=frozenset(version.effect_kinds),
    )


def _validator(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for(schema, offline=True) if schema else None


def unknown(workspace_id: UUID, name: str) -> ToolUnknown:
    """The refusal of a tool that is not registered, with the name that was perhaps meant."""
    own = Tool.objects.filter(workspace=workspace_id, version__gt=0)
    names = own.values_list("name", flat=True)
    near = difflib.get_close_matches(name, names, n=1)
    return ToolUnknown(tool=name[:128], suggestion=f" Did you mean {near[0]!r}?" if near else "")


def check_arguments(tool: Registered, arguments: dict[str, Any]) -> None:
    """Raise Invalid, with a pointer to each fault, where the tool's schema does not fit."""
    if tool.validator is None or tool.validator.is_valid(arguments):
        return
    errors = [
        {
            "pointer": "/arguments" + "".join(f"/{part}" for part in error.instance_path),
            "detail": _why(error),
        }
        for error in list(tool.validator.iter_errors(arguments))[:20]
    ]
    raise Invalid(
        detail=f"The arguments do not fit the input schema of {tool.name}: "
        f"{errors[0]['pointer']} {errors[0]['detail']}.",
        errors=errors,
    )


NAMES_ONLY = frozenset({"required", "additionalProperties"})
"""Rules whose message names members and repeats no value of the caller's."""


def _why(error: Any) -> str:
    path = [str(part) for part in error.schema_path]
    if path and path[-1] in NAMES_ONLY:
        return str(error.message)[:300]
    return f"does not satisfy {'/'.join(path)}"
