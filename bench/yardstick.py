"""Runs the yardstick's closed loop: `python -m bench.yardstick CALLS IN_FLIGHT`, one JSON line."""

import json
import sys
import threading
import time

from bench.celery_app import tally
from bench.load import Load


def closed_loop(calls: int, in_flight: int) -> Load:
    """`delay().get()` in threads, `in_flight` at a time."""
    load, left, lock = Load(), [calls], threading.Lock()

    def client() -> None:
        while True:
            with lock:
                if left[0] <= 0:
                    return
                left[0] -= 1
            began = time.perf_counter()
            tally.delay().get(timeout=30)
            load.latencies.append(time.perf_counter() - began)

    threads = [threading.Thread(target=client) for _ in range(in_flight)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.seconds = time.perf_counter() - began
    return load


if __name__ == "__main__":
    closed_loop(50, 4)
    measured = closed_loop(int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(measured.figures()))
