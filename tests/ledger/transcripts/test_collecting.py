"""The collector rests while a conversation is mended, and is always awake again afterwards."""

import gc
from threading import Event, Thread

import pytest

from ledger.transcripts.collecting import OVERLAPS_MAX, collector_at_rest
from ledger.transcripts.neutral import Unreadable
from ledger.transcripts.profiles import profile
from ledger.transcripts.repair import repair

LIMIT_S = 10


def test_the_collector_rests_inside_and_is_awake_afterwards():
    with collector_at_rest():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_refused_transcript_leaves_the_collector_awake():
    with pytest.raises(Unreadable):
        repair("nothing", format="openai-chat", profile=profile("openai-chat"))

    assert gc.isenabled()


def test_the_last_to_leave_wakes_the_collector():
    with collector_at_rest():
        other = _Other()
    asleep = not gc.isenabled()
    other.leave()

    assert asleep
    assert gc.isenabled()


def test_a_collector_that_was_off_before_stays_off():
    gc.disable()
    try:
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_work_that_overlaps_without_end_does_not_keep_the_collector_asleep():
    other = _Other()
    for _ in range(OVERLAPS_MAX):
        with collector_at_rest():
            pass
    awake = gc.isenabled()
    other.leave()

    assert awake


class _Other:
    """A second thread at work until it is told to leave."""

    def __init__(self):
        self.is_in, self.may_leave = Event(), Event()
        self.thread = Thread(target=self._work)
        self.thread.start()
        assert self.is_in.wait(LIMIT_S)

    def _work(self):
        with collector_at_rest():
            self.is_in.set()
            self.may_leave.wait(LIMIT_S)

    def leave(self):
        self.may_leave.set()
        self.thread.join(LIMIT_S)
