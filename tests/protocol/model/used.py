"""What is known of the time that the jobs of a client used."""

from collections.abc import Iterable
from dataclasses import dataclass

MOST_MS = 1000  # what a claim charges for a job
FIRST_MS = 10.0
BASE_MS = 1_700_000_000_000
ROUNDED = 0.0000123  # no number is in the middle between two that are told


@dataclass
class Used:
    """What is known of the jobs of a client."""

    mean: float
    running: int = 0
    starts: int = 0  # the times since which they count, together
    charged: float = 0
    since: int = 0
    turn: float | None = None  # while it is blocked

    @property
    def estimate(self) -> float:
        return min(self.mean, MOST_MS)

    def charge(self, now: int) -> float:
        return max(self.running * self.estimate, self.running * now - self.starts) if self.running else 0

    def start(self, jobs: int, since: int) -> None:
        self.running += jobs
        self.starts += jobs * since
        self.charged += jobs * self.estimate

    def begin_anew(self, now: int) -> None:
        running, self.running, self.starts, self.charged, self.since = self.running, 0, 0, 0, now
        self.start(running, now)

    def __str__(self) -> str:
        numbers = [self.running, self.starts - self.running * BASE_MS, self.charged, self.mean, self.since]
        return rounded([*numbers, *([] if self.turn is None else [self.turn])])


def rounded(numbers: Iterable[float]) -> str:
    return " ".join(f"{float(number) + ROUNDED:.4f}" for number in numbers)
