"""Ben pays the suppliers: two connections broke off, and the bank's tool wants two people."""

from demo import office
from demo.house import House
from demo.stage import Scene
from demo.talks import Talk, fetched, settled, stands
from recovery import takings


def suppliers(house: House) -> Scene:
    """One transfer is paid, one waits for a second person, one for anybody."""
    talk = Talk(
        house, "ben", "Pay the suppliers", working_directory="/srv/books", host="desk-3",
        model="house-model-4",
    )  # fmt: skip
    talk.asks("Pay the printer, the paper mill and the courier.")
    paid = talk.calls("bank.transfer", "The printer first.", payee="Quay Printers",
                      amount_cents=129900, currency="EUR")  # fmt: skip
    yield lambda: settled(paid)
    fetched(paid)
    mill, courier = talk.calls_many(
        "bank.transfer", "Then the other two.",
        [{"payee": "Corrib Paper Mill", "amount_cents": 482050, "currency": "EUR",
          "fault": "drop_after"},
         {"payee": "Bay Couriers", "amount_cents": 31500, "currency": "EUR",
          "fault": "error_after"}],
    )  # fmt: skip
    yield lambda: stands("ambiguous", mill, courier)
    talk.asks("Never mind the rest, what is the balance of the printer?")
    talk.shows(read=False)
    omar, olga = house.person("omar"), house.person("olga")
    seen = office.found(
        mill, "happened", "The bank's list of today has this transfer.", kind="document", by=omar,
        reference="statement of 16:00", body="booked;482050;EUR;Corrib Paper Mill;GB-7741",
    )  # fmt: skip
    office.decide(mill, "happened", "It is on the bank's list.", by=omar, evidence=seen)
    takings.take(incident_id=office.incident_of(courier).id, by=olga)
    office.found(courier, "unknown", "The courier says that their accounts look on Monday.",
                 kind="statement", by=house.person("will"))  # fmt: skip
