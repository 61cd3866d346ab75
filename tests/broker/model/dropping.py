"""The part of the model that makes room in full queues: on_full="drop_oldest"."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence

from django_rtq.broker.messages import UniqueJob
from django_rtq.jobs.outcome import DROPPED
from tests.broker.model.parts import Parts
from tests.broker.model.state import RESULT_MS, Lane, lane_name, with_task

MORE = 100  # jobs that one call drops, beside one for each of its own

FindPlace = Callable[[str], str]  # takes a client, answers why there is no place


class Dropping(Parts):
    """One queue, and the jobs that make room for others."""

    def make_room(self, client: str, reserved: Sequence[str] = ()) -> str:
        """Drop the oldest until a new job fits. Why it does not; "": it does."""
        refusal = self.refusal(client, reserved)
        if self._refusal_beside(client, Counter()):
            return refusal
        while refusal and self.drops_left > 0:
            lane = self._oldest_lane(client if refusal.startswith("full client") else None)
            if lane is None:
                return refusal
            self._drop_first(lane)
            self.drops_left -= 1
            refusal = self.refusal(client, reserved)
        return ""

    def refusal_of_all(self, jobs: Sequence[UniqueJob]) -> tuple[list[str], list[str]]:
        """The answers if no queued job counted, and the clients of the new ones."""
        taken: Counter[str] = Counter()
        trial = copy.deepcopy(self)

        def find_place(client: str) -> str:
            refusal = self._refusal_beside(client, taken)
            taken[client] += not refusal
            return refusal

        answers = [trial.enqueue_one(job, find_place) for job in jobs]
        return answers, list(taken.elements())

    def enqueue_one(self, job: UniqueJob, find_place: FindPlace) -> str:
        """See Enqueuing."""
        raise NotImplementedError

    def _refusal_beside(self, client: str, taken: Counter[str]) -> str:
        """Why a job does not fit beside those that wait for their time."""
        waiting = {"client": len(self.scheduled_of(client)) + taken[client]}
        waiting["queue"] = len(self.scheduled) + taken.total()
        return self.refusal_at(client, waiting)

    def _oldest_lane(self, client: str | None) -> Lane | None:
        if client is None:
            return min(self.waiting, key=lambda lane: (self.waiting[lane], lane_name(lane)), default=None)
        bands = self.bands_of(client)
        lanes = [(band, client) for band in bands if (band, client) in self.waiting]
        return min(lanes, key=lambda lane: self.waiting[lane], default=None)

    def _leave_ring(self, band: int, client: str) -> None:
        """Unless it is blocked."""
        if client in self.blocked_in[band]:
            return
        if client in self.rings[band]:
            self.rings[band].remove(client)
        if not self.rings[band]:
            self.bands.discard(band)

    def _trim_cancelled(self, lane: Lane) -> None:
        """Cancelled jobs leave the front; behind others they stay until a claim passes them over."""
        ids, is_new_first = self.lanes[lane], False
        while ids and ids[0] not in self.jobs:
            self.cancelled_in_lane.pop(ids.pop(0), None)
            is_new_first = True
        if not ids:
            self.waiting.pop(lane, None)
            self._leave_ring(*lane)
        elif is_new_first:
            self.waiting[lane] = self.waits_since(ids[0])

    def _drop_first(self, lane: Lane) -> None:
        """Or the last, if that waits longer."""
        ids = self.lanes[lane]
        is_last = self.waits_since(ids[-1]) < self.waits_since(ids[0])
        job_id = ids[-1 if is_last else 0]
        if job_id in self.jobs:
            self._remember([(job_id, RESULT_MS, with_task(DROPPED, self.jobs[job_id].body))])
            self._forget([job_id])
            self._count("dropped")
            self.dropped.append(job_id)
        else:
            del self.cancelled_in_lane[job_id]
        ids.pop(-1 if is_last else 0)
        if not ids:
            del self.waiting[lane]
            self._leave_ring(*lane)
        elif not is_last:
            self.waiting[lane] = self.waits_since(ids[0])
