"""Limits of waiting jobs: what fits."""

from tests.protocol.model.state import Part, values_of


class Room(Part):
    """Whether a new job fits."""

    def refusal(self, client: str) -> str:
        """Why one more job of a client does not fit; "": it fits."""
        waiting = {"client": self.waiting_of(client)}
        waiting["queue"] = len(self.queue.jobs) - len(self.queue.dead) - self.queue.running_counts()["queue"]
        own, default = self.queue.set_limits.get(f"client:{client}", ""), self.queue.set_limits.get("clients", "")
        for scope, texts in (("client", f"{own} {default}"), ("queue", self.queue.set_limits.get("queue", ""))):
            most = values_of(texts).get("max_waiting", "none")
            if most != "none" and waiting[scope] >= int(most):
                return f"full {scope} {waiting[scope]} {most}"
        return ""

    def waiting_of(self, client: str) -> int:
        lanes = [
            ids for (band, name), ids in self.queue.lanes.items() if name == client and self._is_served(band, client)
        ]
        return sum(job_id in self.queue.jobs for ids in lanes for job_id in ids) + len(self.queue.scheduled_of(client))

    def _is_served(self, band: int, client: str) -> bool:
        return band in self.queue.bands or band in self.queue.blocked.get(client, ())
