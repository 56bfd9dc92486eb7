"""The two sides of the comparison: each starts, runs a closed loop of its own, and stops."""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import cpu
from standalone.ports import free_port
from standalone.valkey import Valkey

BASE = Path(__file__).resolve().parent.parent
START_LIMIT_S = 120


@dataclass(slots=True)
class Contender:
    """A running side: `loop` is its closed loop's command, `roots` the process trees it spends."""

    name: str
    loop: list[str]
    environ: dict[str, str]
    roots: list[int]
    facts: dict[str, Any] = field(default_factory=dict)

    def run(self, calls: int, in_flight: int) -> dict[str, float]:
        """One round; the figures with CPU seconds per 1000 calls of client, workers and servers."""
        before = sum(cpu.seconds(root) for root in self.roots)
        client_before = cpu.spent_by_children()
        done = subprocess.run(  # noqa: S603 our own program
            [*self.loop, str(calls), str(in_flight)],
            env=os.environ | self.environ, cwd=BASE, capture_output=True, check=True, text=True,
        )  # fmt: skip
        spent = sum(cpu.seconds(root) for root in self.roots) - before
        spent += cpu.spent_by_children() - client_before
        figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        # The warm-up's 50 calls spend, too.
        figures["cpu_s_per_1000"] = round(1000 * spent / (calls + 50), 3)
        return figures


QUOTAS = ("CALLS", "POLLS", "WORKSPACE", "ADDRESS")
ENDLESS = {f"CLEARHOUSE_QUOTA_{name}": "1000000" for name in QUOTAS}
"""One key asks as fast as it can: its quotas are counted, and never spent."""


@contextmanager
def clearhouse() -> Iterator[Contender]:
    """The whole product by `manage.py up` in a throw-away folder, everything on, fsync too."""
    with tempfile.TemporaryDirectory(prefix="clearhouse-bench-") as folder:
        port = free_port()
        log = Path(folder, "up.log").open("wb")
        up = subprocess.Popen(  # noqa: S603 our own program
            [sys.executable, "manage.py", "up", "--json", "--data", f"{folder}/data",
             "--port", str(port)],
            cwd=BASE, env=os.environ | ENDLESS, stdout=subprocess.PIPE, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            assert up.stdout is not None
            facts = json.loads(up.stdout.readline())
            yield Contender(
                name="clearhouse",
                loop=[sys.executable, "-m", "bench.load", f"127.0.0.1:{port}", facts["api_key"]],
                environ={},
                roots=[up.pid],
                facts=facts | {"port": port, "data": f"{folder}/data"},
            )
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(timeout=START_LIMIT_S)
            log.close()


@contextmanager
def celery() -> Iterator[Contender]:
    """Celery as it comes: prefork, Redis as broker and result backend, nothing kept on disk."""
    with tempfile.TemporaryDirectory(prefix="celery-bench-") as folder:
        valkey = Valkey(Path(folder), password=secrets.token_urlsafe(16), durable=False)
        valkey.start()
        environ = {"BENCH_REDIS_URL": valkey.url, "BENCH_LINES": f"{folder}/lines"}
        worker = subprocess.Popen(  # noqa: S603 our own program
            [sys.executable, "-m", "celery", "-A", "bench.celery_app", "worker", "-c",
             str(os.cpu_count() or 2), "-l", "error"],
            cwd=BASE, env=os.environ | environ, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield Contender(
                name="celery",
                loop=[sys.executable, "-m", "bench.yardstick"],
                environ=environ,
                roots=[worker.pid, valkey.pid or 0],
            )
        finally:
            worker.terminate()
            worker.wait(timeout=30)
            valkey.stop()


def fsync_us(folder: Path) -> float:
    """The median cost of one fsync, in microseconds: above 300 the round is noise."""
    path = folder / "probe"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    costs = []
    for _ in range(50):
        os.write(descriptor, b"x" * 512)
        began = time.perf_counter()
        os.fsync(descriptor)
        costs.append(time.perf_counter() - began)
    os.close(descriptor)
    path.unlink()
    return sorted(costs)[25] * 1e6
