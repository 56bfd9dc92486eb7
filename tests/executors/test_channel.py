"""The channel between a real tool child and its holder."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from executors import fence, launcher
from executors.channel import Channel, ChannelClosed, Closed, FrameRefused, Message
from executors.launcher import Running
from tests.executors.watched import stay

Launch = Callable[[Callable[[Channel], Any]], Running]


@pytest.fixture
def launch() -> Iterator[Launch]:
    started: list[Running] = []

    def begin(body: Callable[[Channel], Any]) -> Running:
        started.append(launcher.launch(body, fence_at_s=fence.boottime_s() + 30))
        return started[-1]

    yield begin
    for running in started:
        running.kill()
        assert running.reap(5) is not None
        running.close()


def hear(running: Running) -> dict[str, Any]:
    message = running.receive(5)
    assert isinstance(message, Message), message
    running.answer({})
    return message.body


def test_a_request_is_answered(launch):
    def body(channel: Channel) -> None:
        answer = channel.request({"ask": "cross"}, b"raw")
        channel.request({"heard": answer})

    running = launch(body)
    assert running.receive(5) == Message({"ask": "cross"}, b"raw")
    assert running.answer({"crossed": True})
    assert hear(running) == {"heard": {"crossed": True}}


def test_nothing_is_received_from_a_silent_tool(launch):
    running = launch(lambda channel: stay())
    began = time.monotonic()
    assert running.receive(0.05) is None
    assert time.monotonic() - began < 2


def test_a_payload_of_the_greatest_size_arrives_whole(launch):
    size = 64 * 1024 * 1024
    running = launch(lambda channel: channel.request({}, b"r" * size))
    message = running.receive(30)
    assert isinstance(message, Message)
    assert len(message.payload) == size
    assert message.payload.count(b"r") == size


def test_a_longer_payload_is_refused_in_the_tool(launch):
    def body(channel: Channel) -> None:
        try:
            channel.request({}, bytes(64 * 1024 * 1024 + 1))
        except FrameRefused as refusal:
            channel.request({"refusal": str(refusal)})

    assert "Cut the payload" in hear(launch(body))["refusal"]


@pytest.mark.parametrize(
    "frame",
    [b"\xff" * 12, b"\x00\x00\x00\x02" + bytes(8) + b"{]", b"\x00\x00\x00\x02" + bytes(8) + b"[]"],
    ids=["lengths over the cap", "not JSON", "not an object"],
)
def test_what_is_not_a_frame_closes_the_channel(launch, frame):
    running = launch(lambda channel: (channel._line.sendall(frame), stay()))
    assert isinstance(running.receive(5), Closed)


def test_a_tool_is_told_when_its_holder_hangs_up(launch, tmp_path):
    told = tmp_path / "told"

    def body(channel: Channel) -> None:
        try:
            channel.request({})
        except ChannelClosed as error:
            told.write_text(str(error))

    running = launch(body)
    assert isinstance(running.receive(5), Message)
    running.close()
    assert running.reap(5) is not None
    assert "Stop and send nothing" in told.read_text()
