"""How soon a program that ended is started again."""

from dataclasses import dataclass

WAITS_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0)  # before each new start in a row
STEADY_S = 10.0  # a run this long was a good one: the row begins anew


@dataclass(slots=True)
class Pace:
    """Counts the bad runs in a row; pure."""

    bad_runs: int = 0

    def wait_s(self, lived_s: float) -> float:
        """Seconds to wait before the next start, after a run of `lived_s` seconds."""
        if lived_s >= STEADY_S:
            self.bad_runs = 0
        wait = WAITS_S[min(self.bad_runs, len(WAITS_S) - 1)]
        self.bad_runs += 1
        return wait
