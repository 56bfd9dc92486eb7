"""The stories of the afternoon, one a file; each is played beside the others."""

from collections.abc import Iterator

from demo.house import House
from demo.scenes import (
    access,
    closing,
    media,
    newsletter,
    outages,
    payments,
    refunds,
    shipping,
)
from demo.stage import Scene


def afternoon(house: House) -> Iterator[tuple[str, Scene]]:
    """Everything that happens side by side."""
    yield "newsletter", newsletter.sent_or_not(house)
    yield "newsletter, a sponsor", newsletter.still_finding_out(house)
    yield "suppliers", payments.suppliers(house)
    yield "refunds", refunds.refunds(house)
    yield "shipping", shipping.late_reports(house)
    yield "trailer", media.trailer(house)
    yield "a forgotten render", media.forgotten(house)
    yield "a render without a handle", media.without_handle(house)
    yield "sign-ins", access.sign_ins(house)
    yield "drift", access.another_directory(house)
    yield "import", access.imported(house)
    yield "rates", outages.rates(house)
    yield "prices", outages.prices(house)
    yield "contacts", outages.contacts(house)


def evening(house: House) -> Iterator[tuple[str, Scene]]:
    """What is under way when somebody opens the console."""
    yield "closing", closing.under_way(house)
