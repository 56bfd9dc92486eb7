"""What the pages that count share: exact up to a thousand, and when somebody is late."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

EXACT_UP_TO = 1_000
SWEEPS = 10


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of calls; `at_least` where more may lie outside the window."""

    number: int
    at_least: bool = False

    def __str__(self) -> str:
        """Exact up to a thousand: `23`, `412+`, `1 000+`."""
        if self.number > EXACT_UP_TO:
            return "1\N{NO-BREAK SPACE}000+"
        return f"{self.number}+" if self.at_least and self.number else str(self.number)


def late_before(now: datetime) -> datetime:
    """The instant before which a deadline that has not been acted on is overdue.

    A deadline that has just passed waits for the next sweep and is nobody's failure; after ten
    sweeps somebody is late. The self-check draws the line at the same place.
    """
    return now - timedelta(seconds=SWEEPS * settings.ENVIRONMENT.sweep_s)
