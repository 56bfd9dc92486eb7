"""Repair is linear: ten times the conversation is ten times the work, counted in calls made."""

import sys

import pytest

from tests.ledger.transcripts.chat import asked, call, got, mend, replied, said


def _clean(number):
    return [asked(f"c{number}", f"d{number}"), got(f"c{number}"), got(f"d{number}")]


def _restarted(number):
    return [asked("0", "0"), got("0", f"{number}"), got("0"), got("0", "twice"), said()]


def _displaced(number):
    return [asked(f"c{number}"), said("Well?"), got(f"c{number}"), got(f"lost{number}")]


def _open(number):
    return [asked("0"), said(f"{number}"), got("0", f"{number}")]


def _half(number):
    return [asked(call(None)), got("0"), replied()]


def _work(transcript, target):
    """How many functions a repair calls: the same on every machine."""
    made = 0

    def count(frame, event, argument):
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        mend(transcript, target)
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "openai-responses"])
@pytest.mark.parametrize("part", [_clean, _restarted, _displaced, _open, _half])
def test_ten_times_the_entries_are_ten_times_the_work(part, target):
    small, large = (
        [said(), *(message for number in range(steps) for message in part(number))]
        for steps in (10, 100)
    )
    mend(small, target)

    assert _work(large, target) <= 11 * _work(small, target)
