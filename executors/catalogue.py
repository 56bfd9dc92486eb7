"""Registers the Python tools of this installation's modules in a workspace."""

from collections.abc import Iterable

from executors.python import PythonTool, registry
from ledger import registry as tools
from ledger.models import Tool, Workspace
from ledger.registry import Author, Declaration
from ledger.vocabulary import RecoveryClass


def register(*, workspace: Workspace, modules: Iterable[str], by: Author) -> list[Tool]:
    """Put every declared tool, and the policy it suggests where the tool has none yet.

    A policy that an admin has changed stays: what code declares is a beginning, not a ruling.
    """
    return [_put(workspace, found, by) for found in registry.load(modules).values()]


def _put(workspace: Workspace, found: PythonTool, by: Author) -> Tool:
    known = Tool.objects.filter(workspace=workspace, name=found.name).exists()
    declaration = Declaration(
        name=found.name,
        executor="python",
        config={"module": found.module, "version": found.version},
        input_schema=found.schema,
        description=found.description,
        effect_kinds=sorted(found.effect_kinds),
        handles=found.has_poll,
        probes=found.has_probe,
        provider=found.provider,
    )
    return tools.put(
        workspace=workspace,
        declaration=declaration,
        policy={} if known else suggested_policy(found),
        by=by,
    )


def suggested_policy(found: PythonTool) -> dict[str, object]:
    """The policy document that a declaration suggests; without a class it acts as a side effect."""
    document: dict[str, object] = {"boundary": str(found.boundary)} | dict(found.policy)
    if found.recovery_class is not None:
        document["recovery_class"] = str(RecoveryClass(found.recovery_class))
    return document
