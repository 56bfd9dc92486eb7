"""What the pages that count share: exact up to a thousand."""

from dataclasses import dataclass

EXACT_UP_TO = 1_000


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
