"""How soon an ended program is started again."""

from standalone.pace import STEADY_S, WAITS_S, Pace


def test_the_first_death_costs_no_wait() -> None:
    assert Pace().wait_s(0.1) == 0


def test_waits_grow_to_ten_seconds_and_stay_there() -> None:
    pace = Pace()

    waits = [pace.wait_s(0.1) for _ in range(len(WAITS_S) + 3)]

    assert waits == [*WAITS_S, 10.0, 10.0, 10.0]
    assert waits == sorted(waits)


def test_a_good_run_forgives_the_bad_ones_before_it() -> None:
    pace = Pace()
    for _ in range(5):
        pace.wait_s(0.1)

    assert pace.wait_s(STEADY_S) == 0
