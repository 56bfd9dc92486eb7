"""`manage.py demo`: play the afternoon on a Clearhouse that runs."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from demo import alarms, house, scenes, stage, tools
from demo.breaks import Elsewhere
from ledger.models import ToolCall
from recovery.models import Incident
from sandbox.folder import NoSandbox


class Command(BaseCommand):
    help = "Play a believable afternoon: calls in every state, incidents of many kinds."

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        try:
            home = house.furnished()
            tools.register(home)
            alarms.connect(home)
            stage.play(scenes.afternoon(home))
            stage.play(scenes.evening(home))
        except (house.NobodyThere, NoSandbox, Elsewhere, stage.WaitedInVain) as error:
            raise CommandError(str(error)) from error
        calls = ToolCall.objects.filter(workspace=home.workspace)
        states = calls.values("state").distinct().count()
        open_ones = Incident.objects.filter(workspace=home.workspace, closed_at=None).count()
        self.stdout.write(
            f"The demo is ready ({time.monotonic() - began:.0f} s): {calls.count()} calls in "
            f"{states} states, {open_ones} open incidents."
        )
