"""Where jobs wait: in lanes, in `scheduled`, and what lies beside their records."""

from collections.abc import Sequence
from typing import Any

from django_rtq.core.broker.messages import NewJob
from tests.protocol.model.state import Lane, Part, Record, lane_name, made_at

SKEW_MS = 1000  # a job whose id tells another time than the server's notes since when it waits


class Places(Part):
    """A job is in one place, and its lane in a ring."""

    def take_in(self, job: NewJob) -> None:
        record = self.queue.jobs[job.id] = self.record(job)
        if record.ready > self.queue.clock.now:
            self.schedule(job.id, record.ready)
        else:
            self._line_up(job.id, at_front=job.at_front == "1")

    def record(self, job: NewJob) -> Record:
        ready = self._moment(job.due, self.queue.clock.now) or self.queue.clock.now
        expires = self._moment(job.expires, ready)
        return Record(job.priority, job.max_crashes, ready, expires, job.client, job.body)

    def _moment(self, text: str, now: int) -> int:
        return (now if text.startswith("+") else 0) + int(text or 0)

    def knows(self, job_id: str) -> bool:
        return (
            job_id in self.queue.jobs
            or self.queue.outcomes.has_finished(job_id)
            or job_id in self.queue.cancelled_in_lane
        )

    def _line_up(self, job_id: str, *, at_front: bool) -> None:
        made = made_at(job_id)
        if made is None or abs(self.queue.clock.now - made) > SKEW_MS:
            self.queue.waiting_since[job_id] = self.queue.clock.now
        lane = self.queue.jobs[job_id].lane
        self.index(lane, self.queue.clock.now)
        self.queue.lanes[lane].insert(0 if at_front else len(self.queue.lanes[lane]), job_id)

    def queue_up(self, job_id: str, since: int) -> None:
        self.queue.waiting_since[job_id] = since
        lane = self.queue.jobs[job_id].lane
        self.index(lane, since)
        self.queue.lanes[lane].append(job_id)

    def give_back(self, job_id: str, *, is_unrun: bool, is_timed: bool = True) -> None:
        """`is_timed`: if clients take turns by time, this job has been charged for its start."""
        lane = band, client = self.queue.jobs[job_id].lane
        self.index(lane, self.queue.clock.now)
        has_had_turn = not is_unrun or (is_timed and self.queue.job_times())
        if not has_had_turn and client in self.queue.rings[band]:
            self.queue.order.come_first(band, client)
        if job_id not in self.queue.lanes[lane]:  # a torn log may have left it there
            self.queue.lanes[lane].insert(0, job_id)
            self.queue.waiting[lane] = self.waits_since(job_id)

    def index(self, lane: Lane, since: int, *, wakes: bool = True) -> None:
        """A client that is blocked wakes nobody, unless its lane was empty."""
        band, client = lane
        is_new = lane not in self.queue.waiting
        self.queue.waiting.setdefault(lane, since)
        if client in self.queue.blocked_in[band] and not is_new and not self.queue.is_bulk:
            return
        self.queue.bands.add(band)
        if client not in self.queue.rings[band] and client not in self.queue.blocked_in[band]:
            self.queue.order.enter(band, client)
        self.queue.work_signal = self.queue.work_signal or wakes

    def waits_since(self, job_id: str) -> int:
        made = made_at(job_id)
        return self.queue.waiting_since.get(job_id, self.queue.clock.now if made is None else made)

    def leave_lane(self, lane: Lane) -> None:
        """The first job is claimed; its client goes on in the ring, or leaves it."""
        band, client = lane
        job_id = self.queue.lanes[lane].pop(0)
        self.queue.waiting_since.pop(job_id, None)
        self.queue.rates.count_starts([client] if self.queue.set_limits else [])
        if self.queue.lanes[lane]:
            self.queue.waiting[lane] = self.waits_since(self.queue.lanes[lane][0])
        else:
            del self.queue.waiting[lane]
        self.queue.order.move_on(band, client)
        self.queue.bands -= set() if self.queue.rings[band] else {band}

    def leave_ring(self, band: int, client: str) -> None:
        """Unless it is blocked."""
        if client in self.queue.blocked_in[band]:
            return
        if client in self.queue.rings[band]:
            self.queue.rings[band].remove(client)
        if not self.queue.rings[band]:
            self.queue.bands.discard(band)

    def trim_cancelled(self, lane: Lane) -> None:
        """Cancelled jobs leave the front; behind others they stay until a claim passes them over."""
        ids, is_new_first = self.queue.lanes[lane], False
        while ids and ids[0] not in self.queue.jobs:
            self.queue.cancelled_in_lane.pop(ids.pop(0), None)
            is_new_first = True
        if not ids:
            self.queue.waiting.pop(lane, None)
            self.leave_ring(*lane)
        elif is_new_first:
            self.queue.waiting[lane] = self.waits_since(ids[0])

    def trim(self, lane: Lane, length: int) -> None:
        self.queue.lanes[lane] = self.queue.lanes[lane][length:]
        if not self.queue.lanes[lane]:
            self.queue.waiting.pop(lane, None)

    def lane_to_purge(self, client: str | None) -> Lane | None:
        """One that has jobs."""
        if client is None:
            return min(self.queue.waiting, key=lambda lane: (self.queue.waiting[lane], lane_name(lane)), default=None)
        return next(((band, client) for band in self.bands_of(client) if self.queue.lanes[band, client]), None)

    def bands_of(self, client: str) -> list[int]:
        """Those in which it may have jobs."""
        return [
            *sorted(self.queue.bands),
            *(band for band in self.queue.blocked.get(client, ()) if band not in self.queue.bands),
        ]

    def schedule(self, job_id: str, due: int) -> None:
        self.queue.due_signal = self.queue.due_signal or due < min(self.queue.scheduled.values(), default=due + 1)
        self.queue.scheduled[job_id] = due
        client = self.queue.jobs[job_id].client
        self.queue.scheduled_by_client[client] = min(due, self.queue.scheduled_by_client.get(client, due))

    def unschedule(self, job_id: str) -> None:
        """A job waits for its time no more. Who has no other is not looked at."""
        del self.queue.scheduled[job_id]
        client = self.queue.jobs[job_id].client
        if not self.queue.scheduled_of(client):
            del self.queue.scheduled_by_client[client]

    def move(self, job_id: str, record: Record, due: int) -> None:
        """It waits until another time, among the jobs of whoever it belongs to now."""
        is_earlier = due < min(self.queue.scheduled.values())
        if record.client != self.queue.jobs[job_id].client:
            self.unschedule(job_id)
        self.queue.jobs[job_id] = record
        is_awaited = self.queue.due_signal
        self.schedule(job_id, due)
        self.queue.due_signal = is_awaited or is_earlier

    def forget(self, job_ids: Sequence[str]) -> None:
        self.queue.unique_jobs.let_go(job_ids)
        self.queue.remembering.forget(job_ids)
        places: tuple[dict[str, Any], ...] = (self.queue.jobs, self.queue.retrying, self.queue.dead)
        for job_id in job_ids:
            beside = (
                self.queue.waiting_since,
                self.queue.failures,
                self.queue.crashes,
                self.queue.errors,
                self.queue.digests,
                self.queue.cancel_requests,
                self.queue.progress,
            )
            if job_id in self.queue.scheduled:
                self.unschedule(job_id)
            for place in (*places, *beside):
                place.pop(job_id, None)

    def runs(self, job_id: str) -> bool:
        return any(job_id in held for held in self.queue.running.values())
