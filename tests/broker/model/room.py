"""Limits of waiting jobs: what fits, and on_full="drop_oldest", which makes room in full queues."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from django_rtq.broker.messages import UniqueJob
from django_rtq.jobs.outcome import DROPPED
from tests.broker.model.state import RESULT_MS, Lane, lane_name, values_of, with_task

if TYPE_CHECKING:
    from tests.broker.model.queue import Queue

MORE = 100  # jobs that one call drops, beside one for each of its own

FindPlace = Callable[[str], str]  # takes a client, answers why there is no place


class Room:
    """Whether a new job fits."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def refusal(self, client: str, reserved: Sequence[str] = ()) -> str:
        """Why one more job of a client does not fit; "": it fits. `reserved`: whose jobs have places already."""
        waiting = {"client": self.waiting_of(client) + reserved.count(client)}
        waiting["queue"] = (
            len(self.queue.jobs) - len(self.queue.dead) - self.queue.running_counts()["queue"] + len(reserved)
        )
        return self.refusal_at(client, waiting)

    def refusal_at(self, client: str, waiting: Mapping[str, int]) -> str:
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

    def make_room(self, client: str, reserved: Sequence[str] = ()) -> str:
        """Drop the oldest until a new job fits. Why it does not; "": it does."""
        refusal = self.refusal(client, reserved)
        if self._refusal_beside(client, Counter()):
            return refusal
        while refusal and self.queue.drops_left > 0:
            lane = self._oldest_lane(client if refusal.startswith("full client") else None)
            if lane is None:
                return refusal
            self._drop_first(lane)
            self.queue.drops_left -= 1
            refusal = self.refusal(client, reserved)
        return ""

    def refusal_of_all(self, jobs: Sequence[UniqueJob]) -> tuple[list[str], list[str]]:
        """The answers if no queued job counted, and the clients of the new ones."""
        taken: list[str] = []  # in the order of the jobs
        trial = copy.deepcopy(self.queue)

        def find_place(client: str) -> str:
            refusal = self._refusal_beside(client, Counter(taken))
            if not refusal:
                taken.append(client)
            return refusal

        answers = [trial.enqueue_one(job, find_place) for job in jobs]
        return answers, taken

    def _refusal_beside(self, client: str, taken: Counter[str]) -> str:
        """Why a job does not fit beside those that wait for their time."""
        waiting = {"client": len(self.queue.scheduled_of(client)) + taken[client]}
        waiting["queue"] = len(self.queue.scheduled) + taken.total()
        return self.refusal_at(client, waiting)

    def _oldest_lane(self, client: str | None) -> Lane | None:
        if client is None:
            return min(self.queue.waiting, key=lambda lane: (self.queue.waiting[lane], lane_name(lane)), default=None)
        bands = self.queue.places.bands_of(client)
        lanes = [(band, client) for band in bands if (band, client) in self.queue.waiting]
        return min(lanes, key=lambda lane: self.queue.waiting[lane], default=None)

    def _drop_first(self, lane: Lane) -> None:
        """Or the last, if that waits longer."""
        ids = self.queue.lanes[lane]
        is_last = self.queue.places.waits_since(ids[-1]) < self.queue.places.waits_since(ids[0])
        job_id = ids[-1 if is_last else 0]
        if job_id in self.queue.jobs:
            self.queue.outcomes.remember([(job_id, RESULT_MS, with_task(DROPPED, self.queue.jobs[job_id].body))])
            self.queue.places.forget([job_id])
            self.queue.count("dropped")
            self.queue.dropped.append(job_id)
        else:
            del self.queue.cancelled_in_lane[job_id]
        ids.pop(-1 if is_last else 0)
        if not ids:
            del self.queue.waiting[lane]
            self.queue.places.leave_ring(*lane)
        elif not is_last:
            self.queue.waiting[lane] = self.queue.places.waits_since(ids[0])
