"""What the stand-in worker imports, loaded once in the stand-in `up`."""

import psycopg as psycopg
import redis as redis


def begin() -> None:
    print("begun as a fork", flush=True)
