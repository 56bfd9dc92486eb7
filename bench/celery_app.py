"""The yardstick: plain Celery over Redis with its result backend, nothing durable."""

import os
from pathlib import Path

from celery import Celery

app = Celery(
    "yardstick", broker=os.environ["BENCH_REDIS_URL"], backend=os.environ["BENCH_REDIS_URL"]
)


@app.task(name="tally")  # type: ignore[untyped-decorator]
def tally() -> dict[str, object]:
    """Append a line to a file: the same no-op that the tool `sandbox.tally` does."""
    descriptor = os.open(
        Path(os.environ["BENCH_LINES"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
    )
    try:
        os.write(descriptor, b"1\n")
    finally:
        os.close(descriptor)
    return {}
