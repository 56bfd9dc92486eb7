"""Services that are down: a breaker that opened, a turn without repeats, a call that backs off."""

from demo.house import House
from demo.stage import Scene
from demo.talks import Talk, settled, stands
from ledger.vocabulary import BreakerState, BudgetScope
from recovery import grants
from recovery.models import Breaker

CURRENCIES = ("USD", "GBP", "CHF", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "RON", "JPY", "CAD")


def rates(house: House) -> Scene:
    """The exchange's line breaks each time, so the breaker opens and a call waits before it."""
    talk = Talk(house, "ben", "Quarter in other currencies", host="desk-3", model="house-model-4")
    talk.asks("Convert the quarter into every currency that we sell in.")
    read = talk.calls_many("rates.latest", "I read today's rates.",
                           [{"currency": each} for each in CURRENCIES])  # fmt: skip
    yield lambda: settled(*read)
    yield lambda: Breaker.objects.filter(
        workspace=house.workspace, name="rates.latest"
    ).exclude(state=BreakerState.CLOSED).exists()  # fmt: skip
    talk.asks("Try the franc again.")
    waiting = talk.calls("rates.latest", "Once more.", currency="CHF")
    yield lambda: stands("scheduled", waiting) or settled(waiting)


def prices(house: House) -> Scene:
    """A catalogue that is down eats all repeats of a turn; an admin grants the tool some more."""
    talk = Talk(house, "ada", "Prices for the newsletter", host="desk-7", model="house-model-4")
    talk.asks("What do the four new books cost?")
    asked = talk.calls_many("catalogue.price", "I ask the catalogue.",
                            [{"isbn": f"978-1-9160{n}2-00-{n}"} for n in range(4)])  # fmt: skip
    yield lambda: settled(*asked)
    grants.grant(
        workspace_id=house.workspace.id,
        wanted=grants.Wanted(scope=BudgetScope.TOOL, key="catalogue.price", attempts=25,
                             grounds="The catalogue moves house tonight; let them try longer."),
        person=house.user("anna"),
    )  # fmt: skip


def contacts(house: House) -> Scene:
    """The customer database cannot be reached: nothing was begun, so the call backs off."""
    talk = Talk(house, "ada", "New address of a reader", host="desk-7", model="house-model-4")
    talk.asks("M. Byrne moved to Basel, please note it.")
    call = talk.calls(
        "crm.update_contact", "I write it down.", contact="C-4711", city="Basel",
        note="<b>VIP</b> \u202eesrever ni\u202c, prefers letters",
        api_token="sk-demo-4f0a91c7b2d85e63a1f7",  # noqa: S106 of nothing; to show the masking
    )  # fmt: skip
    yield lambda: stands("backing_off", call)
