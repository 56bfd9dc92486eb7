"""Tools: keys read them, admins change them, each change with author and grounds."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from ledger import registry
from ledger.api import shapes
from ledger.api.auth import KeyOrLogin, Login
from ledger.api.schemas import PageOut, SwitchIn, ToolIn
from ledger.errors import NotFound
from ledger.models import Tool, Workspace
from ledger.permissions import Person
from ledger.registry import Author, Declaration
from ledger.strictjson import is_identifier

router = Router(tags=["tools"])
READ, ADMIN = KeyOrLogin("calls:read"), Login("admin")


def _author(person: Person, grounds: str) -> Author:
    return Author(name=person.name, grounds=grounds, person_id=person.id)


def _tool(request: HttpRequest, name: str) -> Tool:
    if not is_identifier(name):  # a NUL would not even reach the look-up
        raise NotFound(noun="tool")
    found = Tool.objects.filter(workspace=request.auth.workspace_id, name=name).first()  # type: ignore[attr-defined]
    if found is None:
        raise NotFound(noun="tool")
    return found


@router.get("", auth=READ, response=PageOut)
def index(request: HttpRequest) -> dict[str, Any]:
    """Every tool of the workspace as it holds now."""
    rows = Tool.objects.filter(workspace=request.auth.workspace_id, version__gt=0)  # type: ignore[attr-defined]
    return {"items": shapes.tools(rows), "next_cursor": None}


@router.get("/{name}", auth=READ)
def detail(request: HttpRequest, name: str) -> dict[str, Any]:
    """One tool."""
    return shapes.tool(_tool(request, name))


@router.put("/{name}", auth=ADMIN)
def put(request: HttpRequest, name: str, body: ToolIn) -> dict[str, Any]:
    """Register a tool, or a new version of it; without a recovery class: a side effect.

    A policy that is less careful than the one in force is refused: change it by its own route,
    where it is tried on history and confirmed.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    tool = registry.put(
        workspace=Workspace.objects.get(id=person.workspace_id),
        declaration=Declaration(
            name=name,
            executor=body.executor,
            config=body.config,
            input_schema=body.input_schema,
            description=body.description,
            effect_kinds=body.effect_kinds,
            annotations=body.annotations,
            handles="job" in body.config,
            probes="probe" in body.config,
            provider=body.provider,
        ),
        policy=body.policy,
        by=_author(person, body.grounds),
        may_loosen=False,
    )
    return shapes.tool(tool)


@router.put("/{name}/switch", auth=ADMIN)
def switch(request: HttpRequest, name: str, body: SwitchIn) -> dict[str, Any]:
    """Switch a tool off or on. Calls past the boundary are left to end."""
    person: Person = request.auth  # type: ignore[attr-defined]
    tool = registry.switch(
        workspace_id=person.workspace_id,
        tool_name=name,
        on=body.on,
        by=_author(person, body.grounds),
    )
    return shapes.tool(tool)


@router.get("/{name}/switch", auth=READ, response=PageOut)
def switches(request: HttpRequest, name: str) -> dict[str, Any]:
    """Every press of a tool's switch, the last first: on or off, who, why and when."""
    rows = _tool(request, name).switches.order_by("-id")[:200]
    return {"items": [shapes.switch(row) for row in rows], "next_cursor": None}
