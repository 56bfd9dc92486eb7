"""Scenes side by side: each goes on when what it waits for is so, and says where it got stuck."""

import time

import pytest

from demo import stage
from demo.stage import Scene, WaitedInVain


def test_scenes_wait_side_by_side() -> None:
    seen: list[str] = []

    def first() -> Scene:
        yield lambda: "second" in seen
        seen.append("first")

    def second() -> Scene:
        seen.append("second")
        yield lambda: "first" in seen
        seen.append("end")

    stage.play([("first", first()), ("second", second())])
    assert seen == ["second", "first", "end"]


def test_a_scene_that_waits_in_vain_is_named_when_the_others_have_ended() -> None:
    seen: list[str] = []

    def stuck() -> Scene:
        yield lambda: False

    def well() -> Scene:
        began = time.monotonic()
        yield lambda: time.monotonic() - began > 0.4
        seen.append("well")

    with pytest.raises(WaitedInVain, match=r"only in part: stuck\. They waited 0.5 s in vain"):
        stage.play([("stuck", stuck()), ("well", well())], limit_s=0.5)
    assert seen == ["well"]


def test_what_is_so_at_once_is_not_waited_for() -> None:
    steps = iter(range(3))

    def quick() -> Scene:
        for _ in steps:
            yield lambda: True

    stage.play([("quick", quick())], limit_s=0.0)
    assert list(steps) == []
