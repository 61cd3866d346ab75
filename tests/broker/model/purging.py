"""Deletes or cancels many jobs that wait, in the model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from django_rtq.jobs.job import made_ms
from django_rtq.jobs.outcome import CANCELLED_UNRUN
from tests.broker.model.enqueuing import Enqueuing
from tests.broker.model.state import RESULT_MS, Lane, in_order, with_task


class Purging(Enqueuing):
    """The waiting jobs of a queue, or of a client."""

    def purged_next(self, limit: int, client: str | None) -> list[str]:
        """What a purge takes first: what is scheduled, or else a lane."""
        job_ids = in_order(self.scheduled if client is None else self.scheduled_of(client))[:limit]
        lane = None if job_ids else self.lane_to_purge(client)
        return self.lanes[lane][:limit] if lane else job_ids

    def purge(self, limit: int, client: str | None = None) -> list[int]:
        """First what is scheduled, then lane after lane. Rings keep the clients until a claim comes by."""
        job_ids = in_order(self.scheduled if client is None else self.scheduled_of(client))[:limit]
        if not job_ids and (lane := self.lane_to_purge(client)):
            job_ids = self.lanes[lane][:limit]
            self._trim(lane, len(job_ids))
        thrown = [job_id for job_id in job_ids if not self.cancelled_in_lane.pop(job_id, None)]
        self._forget(thrown)
        self.delete_logs(job_ids)
        if job_ids:
            self._count("purged", len(thrown))
        return [len(thrown), len(job_ids)]

    def cancel_client_jobs(self, client: str, until_ms: int, at: str, limit: int) -> list[str]:
        """First what is scheduled, the latest first, then lane after lane."""
        place, skip = at.split()
        scheduled = in_order(self.scheduled_of(client))[::-1][int(skip) : int(skip) + limit]
        if place == "scheduled" and scheduled:
            cancelled = self._cancel_all(scheduled, until_ms)
            return [f"scheduled {int(skip) + len(scheduled) - len(cancelled)}", *cancelled]
        bands = self.bands_of(client)
        first = next((i for i, band in enumerate(bands) if str(band) == place), -1)
        for i in range(max(first, 0), len(bands)):
            lane, start = (bands[i], client), int(skip) if i == first else 0
            if job_ids := self.lanes[lane][start : start + limit]:
                cancelled = self._cancel_all([job_id for job_id in job_ids if job_id in self.jobs], until_ms)
                self.cancelled_in_lane |= dict.fromkeys(cancelled, lane)
                passed = [] if start else list(takewhile(lambda job_id: job_id not in self.jobs, job_ids))
                self._trim(lane, len(passed))
                for job_id in passed:
                    self.cancelled_in_lane.pop(job_id, None)
                return [f"{bands[i]} {start + len(job_ids) - len(passed)}", *cancelled]
        return [""]

    def _cancel_all(self, job_ids: Sequence[str], until_ms: int) -> list[str]:
        cancelled = [job_id for job_id in job_ids if made_ms(job_id) <= until_ms]
        if cancelled:
            texts = [with_task(CANCELLED_UNRUN, self.jobs[job_id].body) for job_id in cancelled]
            self._remember([(job_id, RESULT_MS, text) for job_id, text in zip(cancelled, texts, strict=True)])
            self._forget(cancelled)
            self._count("cancelled", len(cancelled))
        return cancelled

    def _trim(self, lane: Lane, length: int) -> None:
        self.lanes[lane] = self.lanes[lane][length:]
        if not self.lanes[lane]:
            self.waiting.pop(lane, None)
