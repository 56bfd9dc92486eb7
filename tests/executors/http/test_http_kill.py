"""A killed sender takes its unsent bytes with it (K7)."""

import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tests.executors.http.loopback import serving

NET = Path("/proc/net/tcp")
pytestmark = pytest.mark.skipif(not NET.exists(), reason="this system has no /proc/net/tcp")
BODY_BYTES = 50_000_000
ROOT = Path(__file__).parents[3]
SENDER = textwrap.dedent(
    """
    import sys
    from executors.http.executor import HttpExecutor
    from ledger.vocabulary import Boundary, RecoveryClass
    from tests.executors.recording_context import RecordingContext, an_assignment

    port, size = int(sys.argv[1]), int(sys.argv[2])
    allow = {"private_hosts": ["127.0.0.1"], "schemes": ["http"], "ports": [port]}
    config = {"method": "POST", "url": f"http://127.0.0.1:{port}/", "allow": allow}
    assignment = an_assignment(
        executor_config={**config, "body": "arguments"}, arguments={"text": "a" * size},
        recovery_class=RecoveryClass(sys.argv[3]), boundary=Boundary.TRANSPORT,
    )
    HttpExecutor(secrets={}).run(assignment, RecordingContext(assignment))
    """
)


def test_the_bytes_that_a_killed_effect_had_queued_never_arrive():
    outcome = kill_a_sender("side_effect")
    assert outcome["queued"] > 0
    assert outcome["read"] <= outcome["arrived"]
    assert isinstance(outcome["ending"], ConnectionResetError)


def test_the_bytes_that_a_killed_read_had_queued_do_arrive():
    """The control: without the option the kernel goes on sending for the dead."""
    outcome = kill_a_sender("read_only")
    assert outcome["read"] == outcome["arrived"] + outcome["queued"]
    assert outcome["ending"] is None


def kill_a_sender(recovery_class):
    """Kill a process whose peer does not read, then let the peer read what still comes."""
    read, killed = [], threading.Event()

    def script(talk):
        assert killed.wait(30)
        while chunk := talk.socket.recv(1 << 20):
            read.append(len(chunk))

    with serving(script) as server:
        command = [sys.executable, "-c", SENDER, str(server.port), str(BODY_BYTES), recovery_class]
        with subprocess.Popen(command, cwd=ROOT) as sender:
            try:
                arrived, queued = wait_for_full_buffers(server.port)
            finally:
                sender.send_signal(signal.SIGKILL)
        killed.set()
        server.wait_until(lambda: server.finished == 1)
        ending = next(iter(server.endings), None)
    return {"read": sum(read), "arrived": arrived, "queued": queued, "ending": ending}


def wait_for_full_buffers(port, limit_s=20.0):
    """Bytes that have arrived and bytes still queued, once neither has moved for five looks."""
    ends, seen = time.monotonic() + limit_s, []
    while time.monotonic() < ends:
        seen.append(buffers(port))
        if len(seen) > 5 and seen[-1][1] > 0 and len(set(seen[-5:])) == 1:
            return seen[-1]
        time.sleep(0.02)
    raise AssertionError(f"The buffers did not fill within {limit_s} s: {seen[-3:]}.")


def buffers(port):
    arrived = queued = 0
    for line in NET.read_text().splitlines()[1:]:
        _, local, remote, state, queues = line.split()[:5]
        if state == "01" and int(local.partition(":")[2], 16) == port:
            arrived = int(queues.partition(":")[2], 16)
        if state == "01" and int(remote.partition(":")[2], 16) == port:
            queued = int(queues.partition(":")[0], 16)
    return arrived, queued
