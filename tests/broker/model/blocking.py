"""Limits of the model: how many jobs may run, and who waits until it may start one. And counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor

from tests.broker.model.state import Lane, due_at, lane_name
from tests.broker.model.times import Times
from tests.broker.model.weights import values_of

FEW = 10  # clients that a claim looks at before it signals work


class Blocking(Times):
    """One queue, its limits, its counters, and clients that are blocked."""

    def change_limits(self, entries: Mapping[str, str]) -> int:
        """While there are limits, what runs has its client behind its entry."""
        changes = {
            source: _changed(self.limit_sources.get(source, ""), source.partition(":")[2], change)
            for source, change in entries.items()
        }
        self._set_sources(changes)
        self.work_signal = self.work_signal or bool(self.bands)
        return len(self.blocked)

    def keep_limits(self, idle_ms: int, limits: Mapping[str, str]) -> int:
        """What the function said, of clients that producers have met."""
        self.asked_limits |= dict.fromkeys(limits, self.clock.now)
        texts, counts = dict(limits), self.running_counts()
        for client in due_at(self.asked_limits, self.clock.now - idle_ms)[: 10 + len(limits)]:
            if counts[f"client:{client}"] or self._waiting_of(client):
                self.asked_limits[client] = self.clock.now
            else:
                del self.asked_limits[client]
                texts[client] = ""
        sources = {f"limits_of:client:{client}": text for client, text in texts.items()}
        changed = {source: text for source, text in sources.items() if self.limit_sources.get(source, "") != text}
        self._set_sources(changed, is_counted=bool(self.set_limits))
        for source in changed:
            self.unblock(source.split(":", 2)[2])
        self.work_signal = self.work_signal or bool(changed and self.bands)
        return len(changed)

    def _set_sources(self, texts_of_sources: Mapping[str, str], is_counted: bool = False) -> None:
        is_weight, was_timed = False, self.has_times
        for source, new in texts_of_sources.items():
            field = source.partition(":")[2]
            before = self.set_limits.get(field, "")
            self.limit_sources[source] = new
            self.limit_sources = {name: text for name, text in self.limit_sources.items() if text}
            texts = [self.limit_sources.get(f"{origin}:{field}", "") for origin in ("run", "limits_of", "settings")]
            self.set_limits[field] = " ".join(filter(None, texts))
            if field.startswith("client"):
                is_weight = is_weight or "weight=" in before + self.set_limits[field]
                _ = "weight=" in self.set_limits[field] and self.mark_newcomers()
        self.set_limits = {field: text for field, text in self.set_limits.items() if text}
        self.change_times(was_timed=was_timed, has_new_weights=is_weight)
        for worker in self.signed_on if self.set_limits and not is_counted else ():
            for job_id, entry in self.running[worker].items():
                if entry.count(" ") == 1:
                    client = self.jobs[job_id].client if job_id in self.jobs else ""
                    self.running[worker][job_id] = f"{entry} {client}"
        if not is_counted:
            self.recount()
        if not self.set_limits:
            self.rate_times, self.next_starts = {}, {}

    def check_blocked(self, clients: Sequence[str]) -> int:
        for client in clients:
            self.unblock(client)
        return sum(client in self.blocked for client in clients)

    def room_of(self, client: str) -> float:
        """How many more jobs a client may start."""
        return min(self._places_of(client), self.starts_of(f"client:{client}"))

    def _places_of(self, client: str) -> float:
        if f"paused:{client}" in self.set_limits:
            return 0
        return self._places(f"client:{client}")

    def queue_room(self) -> float:
        return min(self._places("queue"), self.starts_of("queue"))

    def _places(self, member: str) -> float:
        most = self._values_of(member).get("max_running", "none")
        return float("inf") if most == "none" else int(most) - self.running_counts()[member]

    def _values_of(self, member: str) -> dict[str, str]:
        default = "" if member == "queue" else self.set_limits.get("clients", "")
        return values_of(f"{self.set_limits.get(member, '')} {default}")

    # -- rates

    def rate_of(self, member: str) -> tuple[float, int] | None:
        """Ms between two starts, and how many may start at once."""
        values = self._values_of(member)
        if values.get("rate", "none") == "none":
            return None
        starts, period = map(int, values["rate"].split("/"))
        burst = values.get("burst", "none")
        return period / starts, max(1, 100 * starts // period) if burst == "none" else int(burst)

    def _ahead(self, member: str, interval: float, burst: int) -> float:
        """How far its starts are ahead of the present, ms."""
        return min(max(0.0, self.rate_times.get(member, 0) - self.clock.now), burst * interval)

    def starts_of(self, member: str) -> float:
        """How many more jobs its rate lets start now."""
        if not (rate := self.rate_of(member)):
            return float("inf")
        return floor(rate[1] - self._ahead(member, *rate) / rate[0] + 1e-6)

    def count_starts(self, owners: Iterable[str], sign: int = 1) -> None:
        """Jobs of these clients start; or did not start after all."""
        for member, number in Counter(name for owner in owners for name in ("queue", f"client:{owner}")).items():
            if rate := self.rate_of(member):
                self.rate_times[member] = self.clock.now + self._ahead(member, *rate) + sign * number * rate[0]

    def open_limits(self) -> float:
        """A claim begins. How many jobs the queue may start."""
        if not self.set_limits:
            return float("inf")
        self.wait_for_rate("queue")
        if self.queue_room() > 0:
            self.resume_due(10)
        return self.queue_room()

    def is_full(self) -> bool:
        """Whether a job has to end before anybody may start one."""
        if self._places("queue") <= 0 and not self.rate_of("queue"):
            return True
        clients = {client for band in self.bands for client in self.rings[band]}
        few = len(self.bands) == 1 and len(clients) <= FEW
        return few and not any(self._places_of(client) > 0 or self.rate_of(f"client:{client}") for client in clients)

    def drop_past(self, most: int) -> None:
        for member in due_at(self.rate_times, self.clock.now)[:most]:
            del self.rate_times[member]

    def wait_for_rate(self, member: str) -> None:
        """If only its rate stops it."""
        places = self._places("queue") if member == "queue" else self._places_of(member.partition(":")[2])
        if places <= 0 or self.starts_of(member) > 0 or not (rate := self.rate_of(member)):
            return
        interval, burst = rate
        arrival = self.clock.now + self._ahead(member, interval, burst)
        self.rate_times[member] = min(self.rate_times[member], arrival)  # it was written when the rate was lower
        due = ceil(arrival - (burst - 1) * interval)
        if interval < 5:
            due = max(due, min(self.clock.now + 5, ceil(arrival)))
        due = max(self.clock.now + 1, due)
        self.due_signal = self.due_signal or due < min(self.next_starts.values(), default=due + 1)
        self.next_starts[member] = due

    def resume_due(self, most: int) -> None:
        due = due_at(self.next_starts, self.clock.now)[:most]
        for member in due:
            del self.next_starts[member]
        for member in due:
            if member == "queue":
                self.work_signal = self.work_signal or bool(self.bands)
            else:
                self.unblock(member.partition(":")[2])

    def promote_rates(self, limit: int) -> None:
        self.resume_due(limit)
        self.drop_past(limit)

    # -- clients that wait

    def refusal(self, client: str, reserved: Sequence[str] = ()) -> str:
        """Why one more job of a client does not fit; "": it fits. `reserved`: whose jobs have places already."""
        waiting = {"client": self._waiting_of(client) + reserved.count(client)}
        waiting["queue"] = len(self.jobs) - len(self.dead) - self.running_counts()["queue"] + len(reserved)
        return self.refusal_at(client, waiting)

    def refusal_at(self, client: str, waiting: Mapping[str, int]) -> str:
        own, default = self.set_limits.get(f"client:{client}", ""), self.set_limits.get("clients", "")
        for scope, texts in (("client", f"{own} {default}"), ("queue", self.set_limits.get("queue", ""))):
            most = values_of(texts).get("max_waiting", "none")
            if most != "none" and waiting[scope] >= int(most):
                return f"full {scope} {waiting[scope]} {most}"
        return ""

    def _waiting_of(self, client: str) -> int:
        lanes = [ids for (band, name), ids in self.lanes.items() if name == client and self._is_served(band, client)]
        return sum(job_id in self.jobs for ids in lanes for job_id in ids) + len(self.scheduled_of(client))

    def _is_served(self, band: int, client: str) -> bool:
        return band in self.bands or band in self.blocked.get(client, ())

    def _block(self, band: int, client: str) -> None:
        self.blocked_in[band].add(client)
        self.keep_turn((band, client))
        bands = self.blocked.setdefault(client, [])
        if band not in bands:
            bands.append(band)
        self.wait_for_rate(f"client:{client}")

    def unblock(self, client: str) -> None:
        if client not in self.blocked:
            return
        self.wait_for_rate(f"client:{client}")
        if self.room_of(client) <= 0:
            return
        self.next_starts.pop(f"client:{client}", None)
        for band in self.blocked.pop(client):
            if client not in self.blocked_in[band]:
                continue
            self.blocked_in[band].remove(client)
            if self.lanes[band, client]:
                self.bands.add(band)
                self._enter(band, client)
                self.work_signal = True

    def lane_to_purge(self, client: str | None) -> Lane | None:
        """One that has jobs."""
        if client is None:
            return min(self.waiting, key=lambda lane: (self.waiting[lane], lane_name(lane)), default=None)
        return next(((band, client) for band in self.bands_of(client) if self.lanes[band, client]), None)

    def bands_of(self, client: str) -> list[int]:
        """Those in which it may have jobs."""
        return [*sorted(self.bands), *(band for band in self.blocked.get(client, ()) if band not in self.bands)]

    def _end_run(self, worker: str, job_ids: Sequence[str], *, are_unrun: bool = False) -> None:
        """The jobs leave the processing list, and others may start in their places."""
        entries = [self.running[worker].pop(job_id) for job_id in job_ids]
        owners = [entry.split(" ", 2)[2] for entry in entries if entry.count(" ") > 1]
        if owners and self.set_limits and are_unrun:
            self.count_starts(owners, -1)
        if owners and self.set_limits:
            self.charge_ended(entries, are_unrun=are_unrun)
            for client in dict.fromkeys(owners):
                self.unblock(client)
            self.work_signal = self.work_signal or bool(self.bands)

    def _count(self, name: str, n: int = 1) -> None:
        counters = self.stats[self.clock.now // 60_000]
        self.is_listed = self.is_listed or (name == "enqueued" and not counters[name])
        counters[name] += n


def _changed(text: str, field: str, change: str) -> str:
    if change == "" or field.startswith("paused:"):
        return change
    values = dict(pair.split("=") for pair in text.split())
    for pair in change.split():
        name, value = pair.split("=")
        values.pop(name, None)
        values |= {name: value} if value else {}
    return " ".join(f"{name}={value}" for name, value in values.items())
