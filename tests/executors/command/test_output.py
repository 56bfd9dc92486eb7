"""Capturing a stream: the cap, the hash, the tail."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from executors.command.output import Capture


@given(st.lists(st.binary(max_size=3000), max_size=60), st.integers(0, 5000))
def test_a_capture_keeps_the_head_and_hashes_the_whole(chunks, cap):
    capture, whole = Capture(cap), b"".join(chunks)
    for chunk in chunks:
        capture.add(chunk)
    assert bytes(capture.head) == whole[:cap]
    assert (capture.size, capture.truncated) == (len(whole), len(whole) > cap)
    assert capture.sha256 == hashlib.sha256(whole).hexdigest()


def test_the_tail_is_the_end_of_the_stream_however_it_was_cut():
    capture = Capture(10)
    for number in range(100_000):
        capture.add(b"%d\n" % number)
    assert capture.tail(12) == "99998\n99999\n"
    assert capture._tail_bytes < 2 * 64 * 1024


def test_what_was_kept_is_forwarded_once():
    capture = Capture(5)
    capture.add(b"abc")
    assert capture.news(10) == b"abc"
    assert capture.news(10) is None
    capture.add(b"defgh")
    assert [capture.news(1), capture.news(10), capture.news(10)] == [b"d", b"e", None]
