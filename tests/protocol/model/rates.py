"""Rates: how many jobs may start in a period."""

from collections import Counter
from collections.abc import Iterable
from math import ceil, floor

from tests.protocol.model.state import Part, due_at


class Rates(Part):
    """When the next job may start."""

    def rate_of(self, member: str) -> tuple[float, int] | None:
        """Ms between two starts, and how many may start at once."""
        values = self.queue.caps.values_of(member)
        if values.get("rate", "none") == "none":
            return None
        starts, period = map(int, values["rate"].split("/"))
        burst = values.get("burst", "none")
        return period / starts, max(1, 100 * starts // period) if burst == "none" else int(burst)

    def _ahead(self, member: str, interval: float, burst: int) -> float:
        """How far its starts are ahead of the present, ms."""
        return min(max(0.0, self.queue.rate_times.get(member, 0) - self.queue.clock.now), burst * interval)

    def starts_of(self, member: str) -> float:
        """How many more jobs its rate lets start now."""
        if not (rate := self.rate_of(member)):
            return float("inf")
        return floor(rate[1] - self._ahead(member, *rate) / rate[0] + 1e-6)

    def count_starts(self, owners: Iterable[str], sign: int = 1) -> None:
        """Jobs of these clients start; or did not start after all."""
        numbers = Counter(name for owner in owners for name in ("queue", f"client:{owner}"))
        ahead = {member: self._ahead(member, *rate) for member in numbers if (rate := self.rate_of(member))}
        if ahead:
            self.drop_past(500)
        for member, number in numbers.items():
            if rate := self.rate_of(member):
                self.queue.rate_times[member] = self.queue.clock.now + ahead[member] + sign * number * rate[0]

    def drop_past(self, most: int) -> None:
        for member in due_at(self.queue.rate_times, self.queue.clock.now)[:most]:
            del self.queue.rate_times[member]

    def wait_for_rate(self, member: str) -> None:
        """If only its rate stops it."""
        places = (
            self.queue.caps.places_left("queue")
            if member == "queue"
            else self.queue.caps.places_of(member.partition(":")[2])
        )
        if places <= 0 or self.starts_of(member) > 0 or not (rate := self.rate_of(member)):
            return
        interval, burst = rate
        arrival = self.queue.clock.now + self._ahead(member, interval, burst)
        self.queue.rate_times[member] = min(
            self.queue.rate_times[member], arrival
        )  # it was written when the rate was lower
        due = ceil(arrival - (burst - 1) * interval)
        if interval < 5:
            due = max(due, min(self.queue.clock.now + 5, ceil(arrival)))
        due = max(self.queue.clock.now + 1, due)
        self.queue.due_signal = self.queue.due_signal or due < min(self.queue.next_starts.values(), default=due + 1)
        self.queue.next_starts[member] = due

    def resume_due(self, most: int) -> None:
        due = due_at(self.queue.next_starts, self.queue.clock.now)[:most]
        for member in due:
            del self.queue.next_starts[member]
        for member in due:
            if member == "queue":
                self.queue.work_signal = self.queue.work_signal or bool(self.queue.bands)
            else:
                self.queue.caps.unblock(member.partition(":")[2])

    def promote_rates(self, limit: int) -> None:
        self.resume_due(limit)
        self.drop_past(limit)
