"""Whether the database's clock jumps: it is compared with this machine's monotonic one.

Leases are the database's to count. If its clock jumps, or this machine slept while it ran on,
leases end in numbers although no worker was silent (reliability, section 4).
"""

import time
from collections.abc import Callable

from django.db import connection

JUMP_S = 5.0


def database_s() -> float:
    """The database's clock, in seconds since 1970."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(cursor.fetchone()[0])


class Clocks:
    """Both clocks, side by side. `jumped_s` tells how far they moved apart since the last look."""

    def __init__(
        self,
        monotonic_s: Callable[[], float] = time.monotonic,
        database_s: Callable[[], float] = database_s,
    ) -> None:
        self.monotonic_s = monotonic_s
        self._database_s = database_s
        self._apart_s: float | None = None

    def jumped_s(self) -> float:
        """Seconds that the database's clock went ahead (or back), 0.0 within five of them.

        How long the answer took is the uncertainty of the comparison: it counts as no jump.
        """
        before = self.monotonic_s()
        said = self._database_s()
        after = self.monotonic_s()
        apart, known = said - (before + after) / 2, self._apart_s
        self._apart_s = apart
        if known is None or abs(apart - known) <= JUMP_S + (after - before):
            return 0.0
        return apart - known
