"""Where a compaction may cut: behind whole steps, and past open calls only with their names."""

from uuid import UUID, uuid4

from ledger.cuts import Asked, Cut, Place, Reply, TurnSeen, allowed, at_or_before


def places(found: list[Cut]) -> list[tuple[int, int]]:
    return [(each.place.turn, each.place.position) for each in found]


def asked(step: int, *, is_open: bool = False, id_: UUID | None = None) -> Asked:
    return Asked(id_ or uuid4(), step, is_open)


def test_a_closed_turn_may_be_cut_behind_each_step_and_at_its_end() -> None:
    # 0 user, 1 reply, 2 reply, 3 user text behind it
    turn = TurnSeen(number=1, is_closed=True, last=3, replies=[Reply(1, 0), Reply(2, 1)])
    assert places(allowed([turn])) == [(1, 1), (1, 2), (1, 3)]


def test_an_open_turn_is_never_cut_behind_a_question_without_its_answer() -> None:
    turn = TurnSeen(number=1, is_closed=False, last=2, replies=[Reply(1, 0)])
    assert places(allowed([turn])) == [(1, 1)]


def test_a_parallel_batch_is_passed_as_a_whole() -> None:
    first, second, later = uuid4(), uuid4(), uuid4()
    turn = TurnSeen(
        number=1,
        is_closed=False,
        last=3,
        replies=[Reply(1, 0), Reply(3, 1)],
        asked=[
            asked(0, is_open=True, id_=first),
            asked(0, is_open=True, id_=second),
            asked(1, is_open=True, id_=later),
        ],
    )
    assert allowed([turn]) == [
        Cut(Place(1, 1), (first, second)),
        Cut(Place(1, 3), (first, second, later)),
    ]


def test_open_calls_of_earlier_turns_are_named_in_every_later_cut() -> None:
    early = uuid4()
    turns = [
        TurnSeen(number=1, is_closed=True, last=1, replies=[Reply(1, 0)],
                 asked=[asked(0, is_open=True, id_=early), asked(0)]),
        TurnSeen(number=2, is_closed=True, last=0),
    ]  # fmt: skip
    assert [each.passes for each in allowed(turns)] == [(early,), (early,)]


def test_a_turn_with_calls_of_unrecorded_replies_is_cut_only_when_it_is_closed() -> None:
    stray = [asked(7, is_open=True)]
    for replies in ([], [Reply(1, 0)]):
        last = 1 if replies else None
        seen = TurnSeen(number=1, is_closed=False, last=last, replies=replies, asked=stray)
        assert allowed([seen]) == []
        closed = TurnSeen(number=1, is_closed=True, last=last, replies=replies, asked=stray)
        assert [each.passes for each in allowed([closed])] == [(stray[0].id,)]


def test_nothing_is_cut_before_an_earlier_compaction() -> None:
    turns = [TurnSeen(number=n, is_closed=True, last=1, replies=[Reply(1, 0)]) for n in (1, 2)]
    assert places(allowed(turns, behind=Place(1, 1))) == [(2, 1)]


def test_the_allowed_cut_is_the_last_at_or_before_the_proposed_one() -> None:
    found = [Cut(Place(1, 3), ()), Cut(Place(2, 1), ())]
    assert at_or_before(found, Place(2, 0)) == found[0]
    assert at_or_before(found, None) == found[1]
    assert at_or_before(found, Place(1, 2)) is None
