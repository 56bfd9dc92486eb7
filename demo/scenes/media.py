"""Cleo renders the trailer: long work that outlives its worker, is handed on, and is forgotten."""

from demo import breaks
from demo.house import House
from demo.stage import Scene
from demo.talks import Talk, crossed, settled, stands
from ledger import acceptances, handoffs, ids, keys
from ledger.handoffs import Offer, Receiver
from ledger.models import Session
from sandbox.folder import SandboxFolder
from sandbox.marks import digest

ASKED_OF_PEOPLE = {"probe": None, "repeat_start": False}


def trailer(house: House) -> Scene:
    """One clip is done; the long one is handed to Ada, who follows it."""
    talk = Talk(house, "cleo", "Render the trailer", host="render-1", model="house-model-4")
    talk.asks("Render the teaser, then the trailer in full length.")
    teaser = talk.calls("sandbox.render", "The teaser first.", frames=12, seconds=1)
    yield lambda: settled(teaser)
    long = talk.calls("sandbox.render", "Now the trailer.", frames=600, seconds=600)
    yield lambda: stands("parked", long)
    follower = Talk(house, "ada", "Follow the trailer", host="render-1", model="house-model-4")
    row, _ = handoffs.offer(
        workspace_id=house.workspace.id,
        agent_id=talk.agent.id,
        session_id=talk.session.id,
        wanted=Offer(agent="ada", session_id=follower.session.id, epoch=1,
                     grounds="My context is full. Ada follows the render."),
    )  # fmt: skip
    acceptances.accept(
        hand_off_id=row.id,
        by=Receiver(
            workspace_id=house.workspace.id,
            agent_id=follower.agent.id,
            scopes=frozenset(keys.AGENT_SCOPES),
            session_id=follower.session.id,
            epoch=Session.objects.get(id=follower.session.id).epoch,
        ),
    )
    follower.asks("Tell me when the trailer is done.")
    follower.shows()
    follower.says("It is being rendered elsewhere; I follow it by its handle.")


def forgotten(house: House) -> Scene:
    """The renderer forgets a clip half-way: there is output, and nobody knows the rest."""
    talk = Talk(house, "cleo", "Cover animation", host="render-1", model="house-model-4")
    talk.asks("Animate the cover.")
    with breaks.under_policy(house, "sandbox.render", ASKED_OF_PEOPLE):
        clip = talk.calls(
            "sandbox.render", "Sixty frames.", frames=60, seconds=30, forget_after_s=5
        )
    yield lambda: stands("ambiguous", clip)


def without_handle(house: House) -> Scene:
    """A worker is killed when the renderer has begun: it renders, and only a person can find it."""
    talk = Talk(house, "cleo", "Book fair loop", host="render-1", model="house-model-4")
    talk.asks("Render the loop for the book fair.")
    with breaks.under_policy(house, "sandbox.render", ASKED_OF_PEOPLE):
        loop = talk.calls(
            "sandbox.render", "Ten minutes of it.", frames=600, seconds=600,
            pause_before_handle_s=60,
        )  # fmt: skip
    yield lambda: crossed(loop)
    marker = ids.marker(loop)
    folder = SandboxFolder.of_environment().renders
    yield lambda: any(folder.glob(f"*.{digest(marker)}"))
    breaks.kill_worker_of(loop)
    yield lambda: stands("ambiguous", loop)
