"""Whoever waits is woken for what they wait for, and is forgotten when they no longer do."""

import asyncio
from uuid import UUID

from ledger.listeners import Listeners, one_a_loop

ONE, OTHER = UUID(int=1), UUID(int=2)


def test_who_waits_for_it_is_woken_and_nobody_else() -> None:
    found = Listeners()
    with found.waiting(ONE) as first, found.waiting(ONE) as second, found.waiting(OTHER) as third:
        found.wake([ONE, UUID(int=3)])
        assert [each.is_set() for each in (first, second, third)] == [True, True, False]
        found.wake_all()
        assert third.is_set()


def test_who_leaves_is_forgotten_also_by_an_error() -> None:
    found = Listeners()
    with found.waiting(ONE):
        try:
            with found.waiting(ONE), found.waiting(OTHER):
                assert (len(found), set(found.ids)) == (3, {ONE, OTHER})
                raise ConnectionResetError
        except ConnectionResetError:
            pass
        assert (len(found), found.ids) == (1, [ONE])
    assert not found
    assert found.ids == []


def test_all_of_one_loop_have_the_same_one() -> None:
    listeners = one_a_loop(Listeners)

    async def asked_twice() -> tuple[Listeners, Listeners]:
        return listeners(), await asyncio.create_task(asked_once())

    async def asked_once() -> Listeners:
        return listeners()

    first, again = asyncio.run(asked_twice())
    assert first is again
    assert asyncio.run(asked_once()) is not first
