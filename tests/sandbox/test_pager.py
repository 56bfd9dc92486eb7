"""The pager takes what it is sent, lists it, and has an address that wants no more."""

from tests.sandbox.world import World


def test_what_it_was_sent_is_listed_in_order(world: World) -> None:
    for number in (1, 2):
        assert world.ask("POST", "/pager", {"type": "incident.opened", "number": number})[0] == 202

    code, taken = world.ask("GET", "/pager")
    assert code == 200
    assert [each["number"] for each in taken[-2:]] == [1, 2]


def test_an_address_that_was_given_back_says_that_it_is_gone(world: World) -> None:
    before = world.ask("GET", "/pager")
    assert world.ask("POST", "/pager/gone", {"type": "incident.opened"})[0] == 410
    assert world.ask("GET", "/pager") == before
