"""Who may go on: sign-ins that nobody completes, an agent in another directory, an import."""

import json
from contextlib import suppress
from pathlib import Path

from demo import breaks
from demo.house import House
from demo.stage import Scene
from demo.talks import Talk, settled, stands
from ledger import bindings
from ledger.bindings import Stated
from ledger.errors import BindingDrift
from ledger.imports import receiving
from ledger.vocabulary import Actor
from recovery import imports
from recovery.imports import By, Wanted

PATIENT = {"timeouts": {"schedule_to_close_s": 840}}
BROKEN = Path(__file__).with_name("broken_transcript.json")


def sign_ins(house: House) -> Scene:
    """One sign-in expired, another still waits for its person."""
    talk = Talk(house, "ada", "Connect the calendar", host="desk-7", model="house-model-4")
    talk.asks("Connect my calendar.")
    expired = talk.calls("sandbox.device_login", "Please confirm.", expires_in_s=2, interval_s=1)
    yield lambda: settled(expired)
    with breaks.under_policy(house, "sandbox.device_login", PATIENT):
        waiting = talk.calls("sandbox.device_login", "That took too long; once more.",
                         expires_in_s=900, interval_s=60)  # fmt: skip
    yield lambda: stands("parked", waiting)


def another_directory(house: House) -> Scene:
    """An agent comes back to its session from a copy of its folder, and is refused."""
    talk = Talk(house, "ben", "Close the month", working_directory="/srv/books", host="desk-3",
                model="house-model-4")  # fmt: skip
    talk.asks("Close the month.")
    looked = talk.calls("sandbox.lookup", "What do we know of returns?", name="returns")
    yield lambda: settled(looked)
    with suppress(BindingDrift):
        bindings.come_back(
            session_id=talk.session.id,
            workspace_id=house.workspace.id,
            agent_id=talk.agent.id,
            stated=Stated(epoch=talk.session.epoch, working_directory="/home/ben/books-copy"),
        )


def imported(house: House) -> Scene:
    """A conversation that broke elsewhere is imported, and mended on the way."""
    agent = house.agent("cleo")
    body = json.dumps(json.loads(BROKEN.read_text())).encode()
    imports.take(
        Wanted(
            workspace_id=house.workspace.id,
            agent_id=agent.id,
            key="bakery-site",
            received=receiving.received(
                body, content_type="application/json", format="openai-chat"
            ),
            by=By(actor=Actor.AGENT, id=agent.id.hex, name=agent.name),
            binding={"label": "The bakery's page"},
        )
    )
    yield lambda: True
