"""Ben refunds a batch of orders while the shop's line breaks; people sort it out one by one and
in bulk, and one decision turns out to be wrong."""

from typing import Any
from uuid import UUID

from demo import breaks, office
from demo.house import House
from demo.stage import Scene
from demo.talks import Talk, fetched, settled, stands
from ledger.conditions import Seen
from ledger.vocabulary import ResolutionAnswer
from recovery import bulk, rehearsals
from recovery.bulk import Selection
from recovery.rulings import Wish

LOOSE = {"recovery_class": "idempotent_write", "key_template": "refund:{payee}"}
ORDERS = (
    "M. Byrne",
    "S. Kelly",
    "T. Walsh",
    "A. Doyle",
    "P. Ryan",
    "N. Daly",
    "J. Burke",
    "L. Keane",
)


def refunds(house: House) -> Scene:
    """Eight refunds of which nobody knows: three in bulk, two one by one, three still open."""
    talk = Talk(house, "ben", "Refund the returned orders", working_directory="/srv/books",
                host="desk-3", model="house-model-4")  # fmt: skip
    talk.asks("Refund everybody on the list of returns.")
    calls = talk.calls_many(
        "shop.refund", "Eight orders came back. I refund them all.",
        [_refund(n) for n in range(len(ORDERS))],
    )  # fmt: skip
    yield lambda: stands("ambiguous", *calls)
    talk.asks("How far are you? J. Burke writes that nothing has come.")
    talk.shows()
    # The same refund again: it is held until somebody knows what became of the first.
    twin = talk.calls("shop.refund", "I refund J. Burke once more.", **_refund(6))
    yield lambda: stands("paused", twin)
    _in_bulk(house, calls[:3])
    denied, corrected = calls[3], calls[4]
    yield lambda: office.denial_unlocked(denied)
    _denied(house, denied)
    yield lambda: settled(*calls[:3], denied)
    _stated_and_corrected(house, corrected)
    yield lambda: settled(corrected)
    olga = house.person("olga")
    fetched(corrected)
    wrong = office.found(corrected, "did_not_happen", "The shop's ledger of 17:00 has no such row: "
                         "the row of 16:00 was another P. Ryan.", by=olga,
                         reference="ledger of 17:00, rf-20398")  # fmt: skip
    yield lambda: office.denial_unlocked(corrected)
    office.correct(corrected, "did_not_happen", "Two customers have the same name.", by=olga,
                   evidence=wrong)  # fmt: skip
    talk.shows(read=False)
    _tried_on_history(house)


def _refund(n: int) -> dict[str, Any]:
    """The fourth never reached the shop; of the others it paid, and the line broke."""
    fault = "drop_before" if n == 3 else "drop_after"
    return {"payee": ORDERS[n], "amount_cents": 1990 + 500 * n, "currency": "EUR", "fault": fault}


def _tried_on_history(house: House) -> None:
    """Anna tries a loose policy, which would have paid twice, and saves a careful one."""
    anna = house.person("anna")
    present = breaks.policy_of(house, "shop.refund")
    rehearsals.attempt(person=anna, tool_name="shop.refund", document=present.document | LOOSE)
    careful = present.document | {"review_s": 3600.0}
    rehearsals.attempt(person=anna, tool_name="shop.refund", document=careful)
    rehearsals.save(
        person=anna,
        tool_name="shop.refund",
        document=careful,
        grounds="Customers wait for their money: remind us after an hour, not after four.",
        seen=Seen(version=present.number),
    )


def _in_bulk(house: House, calls: list[UUID]) -> None:
    omar = house.person("omar")
    for call_id in calls:
        office.found(call_id, "happened", "The shop's export of refunds has it.", by=omar,
                     reference="export of 16:40")  # fmt: skip
    run = bulk.freeze(
        selection=Selection(incidents=[office.incident_of(each).id for each in calls]),
        wish=Wish(
            answer=ResolutionAnswer.HAPPENED, grounds="All three are in the shop's export of 16:40."
        ),
        evidence={},
        by=omar,
    )
    bulk.start(run_id=run.id, confirm=bulk.confirm_of(run), by=omar)


def _denied(house: House, call_id: UUID) -> None:
    olga = house.person("olga")
    none = office.found(call_id, "did_not_happen", "The shop's export of refunds has no such row.",
                        reference="export of 16:40", by=olga)  # fmt: skip
    office.decide(call_id, "did_not_happen", "It never reached the shop.", then="close", by=olga,
                  evidence=none)  # fmt: skip


def _stated_and_corrected(house: House, call_id: UUID) -> None:
    omar = house.person("omar")
    said = office.found(call_id, "happened", "The customer says that the money has come.",
                        kind="statement", by=omar)  # fmt: skip
    office.decide(call_id, "happened", "The customer confirmed it on the phone.", by=omar,
                  evidence=said)  # fmt: skip
