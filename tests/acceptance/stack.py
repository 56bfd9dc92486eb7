"""The drills' stack with what these tests ask it besides."""

import json

from drills.agent import Agent
from drills.stack import POOL_CHILDREN, effects_pool
from drills.stack import SWIFT as SWIFT
from drills.stack import SWIFT_TIMEOUTS as SWIFT_TIMEOUTS
from drills.stack import Stack as DrillStack

EFFECTS = effects_pool(POOL_CHILDREN)
# Something to do for each kind of worker, by the name of its program.
WORK = {
    "effects": ("sandbox.write_artifact", {"path": "something.txt", "text": "It works."}),
    "reads": ("sandbox.lookup", {"name": "opening-hours"}),
}


class Stack(DrillStack):
    """One installation, and the world around it as a scene's word finds it."""

    def mails(self, subject: str) -> int:
        """How many messages with this subject the world's mailbox holds."""
        found = Agent(self.state.ports()["sandbox_http"], "").get("/mailbox")
        return sum(entry["subject"] == subject for entry in found)

    def artifacts(self, path: str) -> list[bytes]:
        """What stands at a path below the artifacts: one text, or none."""
        found = self.world.artifact(path)
        return [] if found is None else [found]

    def renders(self, marker: str) -> int:
        """How many renders the world holds for a call."""
        requests = self.world.folder.renders.glob("*/request.json")
        return sum(json.loads(file.read_bytes())["marker"] == marker for file in requests)
