"""Limits of the model: how many jobs may run, and who waits until it may start one. And counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.broker.model.state import Lane, lane_name
from tests.broker.model.weights import Weights, values_of


class Blocking(Weights):
    """One queue, its limits, its counters, and clients that are blocked."""

    def change_limits(self, entries: Mapping[str, str]) -> int:
        """While there are limits, what runs has its client behind its entry."""
        is_weight = False
        for source, change in entries.items():
            field = source.partition(":")[2]
            before = self.set_limits.get(field, "")
            self.limit_sources[source] = _changed(self.limit_sources.get(source, ""), field, change)
            self.limit_sources = {name: text for name, text in self.limit_sources.items() if text}
            texts = [self.limit_sources.get(f"{origin}:{field}", "") for origin in ("run", "settings")]
            self.set_limits[field] = " ".join(filter(None, texts))
            if field.startswith("client"):
                is_weight = is_weight or "weight=" in before + self.set_limits[field]
                _ = "weight=" in self.set_limits[field] and self.mark_newcomers()
        if is_weight:
            self.pull_back()
        self.set_limits = {field: text for field, text in self.set_limits.items() if text}
        for worker in self.signed_on if self.set_limits else ():
            for job_id, entry in self.running[worker].items():
                if entry.count(" ") == 1:
                    client = self.jobs[job_id].client if job_id in self.jobs else ""
                    self.running[worker][job_id] = f"{entry} {client}"
        self.work_signal = self.work_signal or bool(self.bands)
        return len(self.blocked)

    def check_blocked(self, clients: Sequence[str]) -> int:
        for client in clients:
            self.unblock(client)
        return sum(client in self.blocked for client in clients)

    def room_of(self, client: str) -> float:
        """How many more jobs a client may start."""
        if f"paused:{client}" in self.set_limits:
            return 0
        own, default = self.set_limits.get(f"client:{client}", ""), self.set_limits.get("clients", "")
        return self._left(f"{own} {default}", self.running_counts()[f"client:{client}"])

    def queue_room(self) -> float:
        return self._left(self.set_limits.get("queue", ""), self.running_counts()["queue"])

    def refusal(self, client: str) -> str:
        """Why one more job of a client does not fit; "": it fits."""
        own, default = self.set_limits.get(f"client:{client}", ""), self.set_limits.get("clients", "")
        lanes = [ids for (band, name), ids in self.lanes.items() if name == client and self._is_served(band, client)]
        waiting = {"client": sum(map(len, lanes)) + len(self.scheduled_of(client))}
        waiting["queue"] = len(self.jobs) - len(self.dead) - self.running_counts()["queue"]
        for scope, texts in (("client", f"{own} {default}"), ("queue", self.set_limits.get("queue", ""))):
            most = values_of(texts).get("max_waiting", "none")
            if most != "none" and waiting[scope] >= int(most):
                return f"full {scope} {waiting[scope]} {most}"
        return ""

    def _is_served(self, band: int, client: str) -> bool:
        return band in self.bands or band in self.blocked.get(client, ())

    def _left(self, texts: str, running: int) -> float:
        most = values_of(texts).get("max_running", "none")
        return float("inf") if most == "none" else int(most) - running

    def _block(self, band: int, client: str) -> None:
        self.blocked_in[band].add(client)
        bands = self.blocked.setdefault(client, [])
        if band not in bands:
            bands.append(band)

    def unblock(self, client: str) -> None:
        if client not in self.blocked or self.room_of(client) <= 0:
            return
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
        bands = [*sorted(self.bands), *(band for band in self.blocked.get(client, ()) if band not in self.bands)]
        return next(((band, client) for band in bands if self.lanes[band, client]), None)

    def _end_run(self, worker: str, job_ids: Sequence[str]) -> None:
        """The jobs leave the processing list, and others may start in their places."""
        entries = [self.running[worker].pop(job_id) for job_id in job_ids]
        owners = [entry.split(" ", 2)[2] for entry in entries if entry.count(" ") > 1]
        if owners and self.set_limits:
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
