"""The geometry of the timeline: what is drawn where, from plain instants."""

from datetime import UTC, datetime, timedelta

import pytest

from dashboard import histories, legends, timeline
from dashboard.stories import Bound, Mark, Run, Story, Wait

NINE = datetime(2027, 3, 2, 9, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NINE + timedelta(seconds=seconds)


def a_run(fence: int = 1, begins: float = 2, ends: float | None = 8, **more: object) -> Run:
    ended = at(ends) if ends is not None else None
    alive = more.pop("proved_until", ended or at(begins + 1))
    return Run(fence, at(begins), alive, ended, **more)  # type: ignore[arg-type]


def a_story(*runs: Run, until: float = 10, **more: object) -> Story:
    return Story(at(0), at(until), more.pop("now", None), runs=runs, **more)  # type: ignore[arg-type]


def lost(**more: object) -> Run:
    return a_run(window_from=at(4), proved_until=at(6), is_lost=True, **more)


def boxes(story: Story, css: str) -> list[tuple[float, float]]:
    drawn = [each for each in timeline.draw(story).boxes if each.css.startswith(css)]
    return [(each.x, round(each.x + each.width, 1)) for each in drawn]


def test_time_runs_to_the_right_on_one_axis_for_all_rows() -> None:
    story = a_story(a_run(1, 0, 5), a_run(2, 5, 10))
    (first, second) = boxes(story, "ran")
    assert first == (timeline.LEFT, second[0])
    assert second[1] == timeline.RIGHT


def test_a_bar_is_never_narrower_than_four_pixels() -> None:
    story = a_story(a_run(1, 0, 0.001), a_run(2, 1, 100), until=100)
    ((left, right), _) = boxes(story, "ran")
    assert right - left == timeline.MIN_WIDTH


def test_the_window_is_light_while_alive_and_dense_after_the_last_proof_of_life() -> None:
    light, dense = timeline.draw(a_story(lost(window_until=at(8)))).boxes[1:]
    assert (light.css, dense.css) == ("may", "may unproved")
    assert light.x + light.width == pytest.approx(dense.x, abs=0.1)


def test_a_window_without_proof_of_death_has_an_open_end() -> None:
    *_, dense = timeline.draw(a_story(lost())).boxes
    assert dense.css == "may unproved endless"
    assert dense.x + dense.width == pytest.approx(timeline.RIGHT, abs=0.1)


def test_what_narrowed_a_window_is_said() -> None:
    *_, dense = timeline.draw(a_story(lost(window_until=at(7), narrowed_by="a finding"))).boxes
    assert "narrowed by a finding" in dense.title
    assert "09:00:07.000" in dense.title


def test_a_wait_more_than_ten_times_all_else_is_broken_and_not_to_scale() -> None:
    waits = [Wait("scheduled", at(0), at(1000), 1)]
    story = a_story(a_run(1, 1000, 1010), until=1010, waits=waits)
    picture = timeline.draw(story)
    assert len(picture.breaks) == 1
    ((left, right),) = boxes(story, "ran")
    assert right - left > 0.8 * (timeline.RIGHT - timeline.LEFT)


def test_a_wait_of_nine_times_all_else_is_to_scale() -> None:
    story = a_story(a_run(1, 90, 100), until=100)
    assert timeline.draw(story).breaks == []


def test_a_call_that_nobody_ran_yet_is_to_scale() -> None:
    waits = [Wait("recorded", at(0), at(1), 1), Wait("scheduled", at(1), at(900), 1)]
    assert timeline.draw(a_story(waits=waits, until=900)).breaks == []


def test_more_than_twelve_attempts_are_folded_and_counted() -> None:
    runs = [a_run(n, n, n + 0.5) for n in range(1, 21)]
    picture = timeline.draw(a_story(*runs, until=21))
    assert picture.folded == 13
    rows = [each.text for each in picture.labels if each.text.startswith("#")]
    assert rows == ["#1", "#2", "#16", "#17", "#18", "#19", "#20"]
    assert "13 more like these" in [each.text for each in picture.labels]


def test_twelve_attempts_are_all_drawn() -> None:
    picture = timeline.draw(a_story(*[a_run(n, n, n + 0.5) for n in range(1, 13)], until=14))
    assert picture.folded == 0


def test_a_bound_that_fired_is_bold_and_one_beyond_the_picture_goes_on() -> None:
    bounds = [Bound("heartbeat", at(2), at(4), 1, fired=True, set_to="2 s"),
              Bound("schedule_to_close", at(0), at(300), 0, set_to="5 m")]  # fmt: skip
    fired, whole = timeline.draw(a_story(a_run(), bounds=bounds)).brackets
    assert (fired.bold, fired.more, fired.label) == (True, False, "heartbeat 2 s fired")
    assert (whole.bold, whole.more, whole.until) == (False, True, timeline.RIGHT)


def test_where_two_labels_would_meet_only_the_one_that_fired_is_written() -> None:
    bounds = [Bound("schedule_to_start", at(0), at(9), 1, set_to="9 s"),
              Bound("start_to_close", at(0.1), at(8), 1, fired=True, set_to="8 s")]  # fmt: skip
    brackets = timeline.draw(a_story(a_run(), bounds=bounds)).brackets
    assert [each.label for each in brackets] == ["start-to-close 8 s fired", ""]
    assert all("09:00:0" in each.title for each in brackets)


def test_now_is_a_line_while_the_call_is_open_and_its_instant_says_so() -> None:
    is_open, settled = timeline.draw(a_story(a_run(), now=at(10))), timeline.draw(a_story(a_run()))
    assert (is_open.now_x, settled.now_x) == (timeline.RIGHT, None)
    assert "now 09:00:10.000" in [each.text for each in is_open.labels]
    assert "09:00:10.000" in [each.text for each in settled.labels]


def legend(story: Story) -> list[str]:
    return [key.text for key in timeline.draw(story).legend]


def test_the_legend_explains_what_is_in_the_picture_and_nothing_else() -> None:
    waits = [Wait("interrupted", at(8), at(10), 1)]
    marks = [Mark("late", at(9), "Late result", 1)]
    assert legend(a_story(a_run(), waits=waits, marks=marks)) == [
        "waiting for recovery or a person", "running, proved", "late result",
    ]  # fmt: skip
    assert legend(a_story(lost())) == [
        "running, proved", "may have happened", "nothing proved any more",
    ]  # fmt: skip


def test_every_mark_of_a_history_has_its_line_in_the_legend() -> None:
    waits = {f"wait {state}" for state in histories.WAITS}
    kinds = {kind for kind, _ in histories.MARKS.values()}
    for mark in waits | kinds | {"ran", "may", "may unproved", "cut", "read", "narrowed"}:
        assert len(legends.of({mark})) == 1, mark


def test_every_mark_lies_within_the_picture_and_says_what_it_is() -> None:
    marks = [Mark("lost", at(n), f"Mark {n}", 1) for n in (0, 5, 10, 99)]
    for sign in timeline.draw(a_story(a_run(), marks=marks)).signs:
        assert 0 <= sign.left <= timeline.WIDTH - 12
        assert "UTC" in sign.title


def test_a_story_of_no_length_can_be_drawn() -> None:
    assert timeline.draw(Story(at(0), at(0), None)).height > 0


def test_what_ended_a_window_has_its_own_mark_at_its_end() -> None:
    story = a_story(lost(window_until=at(8), narrowed_by="proof of death (fenced)"))
    (sign,) = [each for each in timeline.draw(story).signs if each.kind == "narrowed"]
    assert sign.x == pytest.approx(timeline.LEFT + 0.8 * (timeline.RIGHT - timeline.LEFT), abs=0.1)
    assert sign.title == "The window ends here: proof of death (fenced), 09:00:08.000 UTC"


def test_a_window_that_nothing_ended_has_no_such_mark() -> None:
    assert [each for each in timeline.draw(a_story(lost())).signs if each.kind == "narrowed"] == []
