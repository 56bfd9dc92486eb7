"""Writes a row every 20 ms, and rings in Valkey, through every loss of its servers.

On SIGTERM it writes a last row that says so, which shows whether PostgreSQL was still there.
"""

import os
import signal
import sys
import time

import psycopg
import redis

asked: list[int] = []
signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
broker = redis.Redis.from_url(os.environ["REDIS_URL"])
while True:
    try:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as link:
            while True:
                said = "end" if asked else "tick"  # once: the signal may come while it writes
                link.execute("insert into ticks (said) values (%s)", [said])
                if said == "end":
                    sys.exit(0)
                broker.incr("ticks")
                time.sleep(0.02)
    except (psycopg.OperationalError, redis.RedisError):
        if asked:
            sys.exit(1)
        time.sleep(0.02)
