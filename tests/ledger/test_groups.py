"""Group commit: company is shared under load, and a bad row fails alone."""

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest

from ledger.groups import Group

LIMIT_S = 10.0


class Book:
    """A writer that remembers its batches; it can be held, and it refuses what is negative."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.entered = threading.Event()
        self.open = threading.Event()
        self.open.set()

    def write(self, rows: Sequence[int]) -> list[int | Exception]:
        self.entered.set()
        assert self.open.wait(LIMIT_S)
        self.batches.append(list(rows))
        if any(row == 0 for row in rows):
            raise ZeroDivisionError
        return [ValueError(row) if row < 0 else row * 10 for row in rows]


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def group(book: Book) -> Iterator[Group[int, int]]:
    group: Group[int, int] = Group(book.write, name="test", largest=8)
    yield group
    book.open.set()
    group.close()


# The threads end by closing a database connection that they never opened.
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_lone_row_waits_for_no_company(book: Book, group: Group[int, int]) -> None:
    assert group.submit(1).result(LIMIT_S) == 10
    assert book.batches == [[1]]


def test_what_arrives_during_a_commit_shares_the_next(book: Book, group: Group[int, int]) -> None:
    book.open.clear()
    first = group.submit(1)
    assert book.entered.wait(LIMIT_S)
    rest = [group.submit(n) for n in range(2, 7)]
    book.open.set()
    assert [f.result(LIMIT_S) for f in (first, *rest)] == [10, 20, 30, 40, 50, 60]
    assert book.batches == [[1], [2, 3, 4, 5, 6]]


def test_a_batch_has_an_end(book: Book, group: Group[int, int]) -> None:
    book.open.clear()
    first = group.submit(1)
    assert book.entered.wait(LIMIT_S)
    rest = [group.submit(n) for n in range(2, 14)]
    book.open.set()
    assert [f.result(LIMIT_S) for f in (first, *rest)] == [n * 10 for n in range(1, 14)]
    assert max(map(len, book.batches)) == 8
    assert sum(book.batches, []) == list(range(1, 14))


def test_a_refused_row_is_refused_alone(book: Book, group: Group[int, int]) -> None:
    book.open.clear()
    futures = [group.submit(n) for n in (1, -2, 3)]
    book.open.set()
    assert futures[0].result(LIMIT_S) == 10
    with pytest.raises(ValueError, match="-2"):
        futures[1].result(LIMIT_S)
    assert futures[2].result(LIMIT_S) == 30


def test_a_row_that_breaks_its_batch_fails_alone(book: Book, group: Group[int, int]) -> None:
    book.open.clear()
    first = group.submit(1)
    assert book.entered.wait(LIMIT_S)
    rest = [group.submit(n) for n in (2, 0, 3)]
    book.open.set()
    assert first.result(LIMIT_S) == 10
    assert (rest[0].result(LIMIT_S), rest[2].result(LIMIT_S)) == (20, 30)
    with pytest.raises(ZeroDivisionError):
        rest[1].result(LIMIT_S)
    assert book.batches == [[1], [2, 0, 3], [2], [0], [3]]


def test_closing_writes_what_is_waiting(book: Book, group: Group[int, int]) -> None:
    futures = [group.submit(n) for n in (1, 2)]
    group.close()
    assert [f.result(0) for f in futures] == [10, 20]


def test_a_closed_group_opens_again(group: Group[int, int]) -> None:
    group.close()
    assert group.submit(4).result(LIMIT_S) == 40


def test_a_loop_is_woken_once_for_all_its_rows_of_a_commit(
    book: Book, group: Group[int, int]
) -> None:
    async def ask() -> list[int | BaseException]:
        book.open.clear()
        first = group.ask(1)
        await asyncio.to_thread(book.entered.wait, LIMIT_S)
        loop, woken = asyncio.get_running_loop(), []
        wake = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *args, **more: (  # type: ignore[method-assign]
            woken.append(args),
            wake(*args, **more),
        )[1]
        rest = [group.ask(n) for n in (2, -3, 4)]
        book.open.set()
        answers = await asyncio.gather(first, *rest, return_exceptions=True)
        assert len(woken) == 2  # the first row's commit, and the other three's
        return answers

    one, two, three, four = asyncio.run(asyncio.wait_for(ask(), LIMIT_S))
    assert (one, two, four) == (10, 20, 40)
    assert isinstance(three, ValueError)


def test_one_who_asked_and_left_holds_up_nobody(book: Book, group: Group[int, int]) -> None:
    async def ask() -> int:
        book.open.clear()
        gone, stays = group.ask(1), group.ask(2)
        gone.cancel()
        book.open.set()
        return await stays

    assert asyncio.run(asyncio.wait_for(ask(), LIMIT_S)) == 20


def test_rows_that_nobody_waits_for_wait_for_company(book: Book) -> None:
    lingers: Group[int, int] = Group(book.write, name="lingers", linger_s=0.2)
    assert [f.result(LIMIT_S) for f in (lingers.submit(1), lingers.submit(2))] == [10, 20]
    assert book.batches == [[1, 2]]
    lingers.close()
