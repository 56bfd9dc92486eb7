"""`manage.py provision`: the first workspace, its operator, its agent and key, and the tools."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand

from executors import catalogue
from ledger import keys
from ledger.models import Agent, Membership, Workspace
from ledger.registry import Author

ROLES = ("viewer", "operator", "approver", "admin")


class Command(BaseCommand):
    help = "Make the first workspace with an operator, an agent with a key, and the known tools."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", default="default")
        parser.add_argument("--operator", default="operator")
        parser.add_argument("--operator-password-file", type=Path, required=True)
        parser.add_argument("--agent", default="agent")
        parser.add_argument("--tools-only", action="store_true", help="Register the tools again.")
        parser.add_argument("--migrate", action="store_true", help="Bring the schema up to date.")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["migrate"]:
            call_command("migrate", interactive=False, verbosity=0)
        workspace, _ = Workspace.objects.get_or_create(
            slug=options["workspace"], defaults={"name": options["workspace"].title()}
        )
        author = Author(name="provision", grounds="Declared by the code of this installation.")
        modules = settings.ENVIRONMENT.tool_modules.split(",")
        tools = catalogue.register(workspace=workspace, modules=modules, by=author)
        made: dict[str, Any] = {
            "workspace": workspace.slug,
            "tools": [tool.name for tool in tools],
        }
        if not options["tools_only"]:
            made |= self._people(workspace, options)
        self.stdout.write(json.dumps(made) if options["json"] else _told(made))

    def _people(self, workspace: Workspace, options: dict[str, Any]) -> dict[str, Any]:
        password = options["operator_password_file"].read_text().strip()
        person, _ = User.objects.get_or_create(username=options["operator"])
        person.set_password(password)
        person.save()
        for role in ROLES:
            Membership.objects.get_or_create(workspace=workspace, person=person, role=role)
        agent, _ = Agent.objects.get_or_create(workspace=workspace, name=options["agent"])
        return {
            "operator": {"username": person.username, "password": password},
            "api_key": keys.issue(agent=agent),
        }


def _told(made: dict[str, Any]) -> str:
    lines = [f"Workspace {made['workspace']} knows {len(made['tools'])} tools."]
    if "api_key" in made:
        lines.append(f"The agent's key, shown this once: {made['api_key']}")
    return "\n".join(lines)
