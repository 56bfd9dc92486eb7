"""Ada sends the newsletter, and the process that sends it is killed behind the boundary."""

from demo import breaks
from demo.house import House
from demo.stage import Scene
from demo.talks import Talk, crossed, fetched, settled, stands
from ledger import compactions
from ledger.compactions import Wanted

SUMMARY = (
    "The draft of newsletter 4/26 is in newsletter/draft.txt, and the editor has been told. The "
    "cover was rendered. Opening hours were checked: Monday to Friday, nine to six."
)


def sent_or_not(house: House) -> Scene:
    """Ordinary work, then a call of which nobody knows whether it went out."""
    talk = Talk(
        house, "ada", "Quarterly newsletter", working_directory="/srv/newsletter", host="desk-7",
        model="house-model-4",
    )  # fmt: skip
    talk.asks("Write the quarterly newsletter, and mail the draft to the editor.")
    hours = talk.calls("sandbox.lookup", "First our opening hours.", name="opening-hours")
    yield lambda: settled(hours)
    fetched(hours)
    talk.calls("sandbox.lookup", "And the address in the old style.", name="address/old-style")
    draft = talk.calls(
        "sandbox.write_artifact", "Not there; I go on with what I have.",
        path="newsletter/draft.txt", text="Dear readers,\n\nautumn is here.",
    )  # fmt: skip
    told = talk.calls(
        "sandbox.send_mail", to="editor@example.org", subject="Draft of 4/26",
        body="The draft is in the usual place.",
    )  # fmt: skip
    yield lambda: settled(hours, draft, told)
    fetched(told)
    talk.says("The editor has the draft.")
    talk.asks("Looks good. Now send it to all subscribers, and tell the editor when it is out.")
    with breaks.under_policy(house, "sandbox.send_mail", {"probe": None}):
        sent = talk.calls(
            "sandbox.send_mail", "Sending.", to="subscribers@example.org",
            subject="Newsletter 4/26", body="To all subscribers.", pause_after_cross_s=60,
        )  # fmt: skip
    yield lambda: crossed(sent)
    breaks.kill_worker_of(sent)
    yield lambda: stands("ambiguous", sent)
    # Whether the newsletter went out is not known, so what depends on it waits.
    talk.calls("sandbox.send_mail", "I tell the editor.", to="editor@example.org",
               subject="Sent", body="The newsletter is out.")  # fmt: skip
    talk.asks("Is it out?")
    talk.shows()
    talk.says("I do not know yet: a person is looking into it. I will not send it twice.")
    _compacted(talk)


def _compacted(talk: Talk) -> None:
    """A summary of the first turn takes its place."""
    talk.session.refresh_from_db()
    prepared = compactions.prepare(session=talk.session)
    compactions.commit(
        workspace_id=talk.session.workspace_id,
        agent_id=talk.agent.id,
        session_id=talk.session.id,
        wanted=Wanted(token=prepared.token, cut=prepared.cuts[0].place, summary=SUMMARY),
    )


def still_finding_out(house: House) -> Scene:
    """An invoice whose sending was interrupted: the mailbox is asked, and knows too little."""
    talk = Talk(house, "ada", "Sponsors", working_directory="/srv/newsletter", host="desk-7")
    talk.asks("Send the sponsor their invoice.")
    slow = {"probe": {"authoritative": False, "interval_s": 600}, "recovery_window_s": 3600}
    with breaks.under_policy(house, "sandbox.send_mail", slow):
        sent = talk.calls(
            "sandbox.send_mail", "Here it goes.", to="sponsor@example.org",
            subject="Invoice 2291", body="Please find the invoice attached.",
            pause_after_cross_s=60,
        )  # fmt: skip
    yield lambda: crossed(sent)
    breaks.kill_worker_of(sent)
    yield lambda: stands("interrupted", sent)
