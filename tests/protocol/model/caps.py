"""Limits of running jobs: of the queue and its clients, and who is blocked until a place is free."""

from collections.abc import Mapping, Sequence

from tests.protocol.model.state import Part, values_of

FEW = 10  # clients that a claim looks at before it signals work


class Caps(Part):
    """Who may start how many jobs."""

    def change_limits(self, entries: Mapping[str, str]) -> int:
        """While there are limits, what runs has its client behind its entry."""
        changes = {
            source: _changed(self.queue.limit_sources.get(source, ""), source.partition(":")[2], change)
            for source, change in entries.items()
        }
        self._set_sources(changes)
        self.queue.work_signal = self.queue.work_signal or bool(self.queue.bands)
        return len(self.queue.blocked)

    def _set_sources(self, texts_of_sources: Mapping[str, str]) -> None:
        is_weight, was_timed = False, self.queue.spent.has_times
        for source, new in texts_of_sources.items():
            field = source.partition(":")[2]
            before = self.queue.set_limits.get(field, "")
            self.queue.limit_sources[source] = new
            self.queue.limit_sources = {name: text for name, text in self.queue.limit_sources.items() if text}
            texts = [self.queue.limit_sources.get(f"{origin}:{field}", "") for origin in ("run", "settings")]
            self.queue.set_limits[field] = " ".join(filter(None, texts))
            if field.startswith("client"):
                is_weight = is_weight or "weight=" in before + self.queue.set_limits[field]
                _ = "weight=" in self.queue.set_limits[field] and self.queue.order.mark_newcomers()
        self.queue.set_limits = {field: text for field, text in self.queue.set_limits.items() if text}
        self.queue.spent.change_times(was_timed=was_timed, has_new_weights=is_weight)
        for worker in self.queue.signed_on if self.queue.set_limits else ():
            for job_id, entry in self.queue.running[worker].items():
                if entry.count(" ") == 1:
                    client = self.queue.jobs[job_id].client if job_id in self.queue.jobs else ""
                    self.queue.running[worker][job_id] = f"{entry} {client}"
        self.queue.spent.recount()
        if not self.queue.set_limits:
            self.queue.rate_times, self.queue.next_starts = {}, {}

    def check_blocked(self, clients: Sequence[str]) -> int:
        for client in clients:
            self.unblock(client)
        return sum(client in self.queue.blocked for client in clients)

    def room_of(self, client: str) -> float:
        """How many more jobs a client may start."""
        return min(self.places_of(client), self.queue.rates.starts_of(f"client:{client}"))

    def places_of(self, client: str) -> float:
        if f"paused:{client}" in self.queue.set_limits:
            return 0
        return self.places_left(f"client:{client}")

    def queue_room(self) -> float:
        return min(self.places_left("queue"), self.queue.rates.starts_of("queue"))

    def places_left(self, member: str) -> float:
        most = self.values_of(member).get("max_running", "none")
        return float("inf") if most == "none" else int(most) - self.queue.running_counts()[member]

    def values_of(self, member: str) -> dict[str, str]:
        default = "" if member == "queue" else self.queue.set_limits.get("clients", "")
        return values_of(f"{self.queue.set_limits.get(member, '')} {default}")

    def open_limits(self) -> float:
        """A claim begins. How many jobs the queue may start."""
        if not self.queue.set_limits:
            return float("inf")
        self.queue.rates.wait_for_rate("queue")
        if self.queue_room() > 0:
            self.queue.rates.resume_due(10)
        return self.queue_room()

    def is_full(self) -> bool:
        """Whether a job has to end before anybody may start one."""
        if self.places_left("queue") <= 0 and not self.queue.rates.rate_of("queue"):
            return True
        clients = {client for band in self.queue.bands for client in self.queue.rings[band]}
        few = len(self.queue.bands) == 1 and len(clients) <= FEW
        return few and not any(
            self.places_of(client) > 0 or self.queue.rates.rate_of(f"client:{client}") for client in clients
        )

    def block(self, band: int, client: str) -> None:
        self.queue.blocked_in[band].add(client)
        self.queue.order.keep_turn((band, client))
        bands = self.queue.blocked.setdefault(client, [])
        if band not in bands:
            bands.append(band)
        self.queue.rates.wait_for_rate(f"client:{client}")

    def unblock(self, client: str) -> None:
        if client not in self.queue.blocked:
            return
        self.queue.rates.wait_for_rate(f"client:{client}")
        if self.room_of(client) <= 0:
            return
        self.queue.next_starts.pop(f"client:{client}", None)
        for band in self.queue.blocked.pop(client):
            if client not in self.queue.blocked_in[band]:
                continue
            self.queue.blocked_in[band].remove(client)
            if self.queue.lanes[band, client]:
                self.queue.bands.add(band)
                self.queue.order.enter(band, client)
                self.queue.work_signal = True


def _changed(text: str, field: str, change: str) -> str:
    if change == "" or field.startswith("paused:"):
        return change
    values = dict(pair.split("=") for pair in text.split())
    for pair in change.split():
        name, value = pair.split("=")
        values.pop(name, None)
        values |= {name: value} if value else {}
    return " ".join(f"{name}={value}" for name, value in values.items())
