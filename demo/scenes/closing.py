"""What is under way when somebody opens the console: work, a queue, a question asked twice."""

from django.db import transaction

from demo.house import House
from demo.stage import Scene
from demo.talks import Talk, settled
from demo.tools import AUTHOR
from ledger import calls, registry

PAGES = 5


def under_way(house: House) -> Scene:
    """Ada prints the newsletter's pages; a twin is held, a call cancelled, a tool switched off."""
    talk = Talk(house, "ada", "Print the newsletter", working_directory="/srv/newsletter",
                host="desk-7", model="house-model-4")  # fmt: skip
    talk.asks("Tell the printer that it comes, and then tell them again.")
    first = talk.calls("sandbox.send_mail", "I tell them.", to="printer@example.org",
                       subject="It comes", body="On Friday, 4000 copies.")  # fmt: skip
    yield lambda: settled(first)
    twin = talk.calls("sandbox.send_mail", "And again.", to="printer@example.org",
                      subject="It comes", body="On Friday, 4000 copies.")  # fmt: skip
    yield lambda: settled(twin)  # answered from the ledger
    with transaction.atomic():
        # One transaction, so that no worker sees the call before it is cancelled.
        early = talk.calls("sandbox.send_mail", "Everybody too.", to="all@example.org",
                           subject="Oops", body="Sent too early.")  # fmt: skip
        calls.cancel(workspace_id=house.workspace.id, agent_id=talk.agent.id, call_id=early)
    registry.switch(workspace_id=house.workspace.id, tool_name="sandbox.pay", on=False, by=AUTHOR)
    talk.asks("Pay the printer from the till.")
    talk.calls("sandbox.pay", "From the till.", payee="Quay Printers", amount_cents=5000,
               currency="EUR")  # fmt: skip
    talk.calls_many(
        "sandbox.write_artifact", "And the pages.",
        [{"path": f"newsletter/page-{n}.txt", "text": "Slowly written.", "pause_before_s": 25}
         for n in range(PAGES)],
    )  # fmt: skip
