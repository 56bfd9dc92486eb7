"""Reading one address: milliseconds of the server, bytes, queries, rows."""

import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bench.pages.addresses import Address
from bench.pages.installation import Installation

MS_MAX, BYTES_MAX = 100.0, 100_000
HERE: dict[str, Any] = {"SERVER_NAME": "127.0.0.1", "raise_request_exception": False}
ROWS_READ = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
  FROM pg_stat_user_tables
"""


@dataclass(frozen=True, slots=True)
class Read:
    """What reading one address took: the median and the worst of all rounds, once it was warm.

    `bytes` are those that are sent to a browser that takes gzip; `rows` those that PostgreSQL
    looked at in tables.
    """

    path: str
    status: int
    median_ms: float
    worst_ms: float
    bytes: int
    queries: int
    rows: int

    @property
    def is_within(self) -> bool:
        """Whether it was read at all, in time, and, if it is a page, whether it is small enough."""
        is_small = self.bytes <= BYTES_MAX or self.path.startswith("/api/")
        return self.status < 500 and self.median_ms <= MS_MAX and is_small

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"within": self.is_within}


class Reader:
    """A person with every role, in this very process; an agent with its key where only one may."""

    def __init__(self, installation: Installation, rounds: int) -> None:
        self._rounds = rounds
        self._person = Client(HTTP_ACCEPT_ENCODING="gzip", **HERE)
        self._person.force_login(installation.person)
        key = f"Bearer {installation.api_key}"
        self._agent = Client(HTTP_ACCEPT_ENCODING="gzip", HTTP_AUTHORIZATION=key, **HERE)

    def read(self, address: Address) -> Read | None:
        """None where nothing is there to be read: the address takes other methods only."""
        client = self._agent if _get(self._person, address)[0] == 401 else self._person
        with CaptureQueriesContext(connection) as captured:
            status, body = _get(client, address)
        queries = len(captured)  # the next request empties the log
        if status == 405:
            return None
        before = _rows_read()
        _get(client, address)
        rows = _rows_read() - before
        times = [_ms(client, address) for _ in range(self._rounds)]
        return Read(
            path=address.path, status=status, median_ms=round(statistics.median(times), 1),
            worst_ms=round(max(times), 1), bytes=len(body), queries=queries, rows=rows,
        )  # fmt: skip


def _get(client: Client, address: Address) -> tuple[int, bytes]:
    answer: Any = client.get(address.path)
    return answer.status_code, b"".join(answer)


def _ms(client: Client, address: Address) -> float:
    began = time.perf_counter()
    _get(client, address)
    return (time.perf_counter() - began) * 1000


def _rows_read() -> int:
    with connection.cursor() as cursor:
        # What this connection has counted is told to the others at the end of a transaction.
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(ROWS_READ)
        return int(cursor.fetchone()[0])
