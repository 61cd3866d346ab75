"""Steps that several verbs of the model share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from django_rtq.broker.messages import NewJob, UniqueJob
from tests.broker.model.logs import Logs
from tests.broker.model.state import Lane, Note, Record, due_at, in_order, made_at

SKEW_MS = 1000  # a job whose id tells another time than the server's notes since when it waits
KEPT_ERRORS = 5
DROPPED_AT_ONCE = 1000  # outcomes that are too many
PERIOD_MS = 120_000  # an id is known at least so long after the end of its job
READ_AT_ONCE = 100  # outcomes that trim reads

Entry = tuple[str, int, str]  # id, ms to keep or failures to count, outcome or failure


class Parts(Logs):
    """One queue, and the steps of which the verbs are made."""

    def _whose_turn(self) -> Lane | None:
        """The highest band, and who comes first in its ring. Who has no work leaves it. Who stands aside keeps it."""
        passed: set[int] = set()
        while bands := self.bands - passed:
            band = max(bands)
            self.place_newcomers(band)
            for client in self.in_turn(band):
                if client in self.standing_aside:
                    passed.add(band)
                    continue
                self.pass_over((band, client))
                if self.lanes[band, client] and self.room_of(client) > 0:
                    return band, client
                self.rings[band].remove(client)
                if self.lanes[band, client]:
                    self._block(band, client)
            if self.looks_again():
                passed.discard(band)
            elif band not in passed:
                self.bands.discard(band)
        return None

    def _may_join(self, taken: Sequence[str], job_id: str, slots: int) -> bool:
        """Jobs with crashes run apart from others, and the more crashes the fewer of them together."""
        group = [*taken, job_id]
        suspects = [each for each in group if each in self.crashes]
        if not suspects:
            return True
        return len(suspects) == len(group) <= min(self._most_beside(each, slots) for each in suspects)

    def _most_beside(self, job_id: str, slots: int) -> int:
        crashes = self.crashes[job_id]
        if crashes >= self.jobs[job_id].max_crashes:
            return min(1, slots)
        return min(slots, max(1, slots >> crashes))

    def _leave_lane(self, lane: Lane) -> None:
        """The first job is claimed; its client goes to the end of the ring, or leaves."""
        band, client = lane
        job_id = self.lanes[lane].pop(0)
        self.waiting_since.pop(job_id, None)
        self.count_starts([client] if self.set_limits else [])
        if self.lanes[lane]:
            self._move_on(band, client)
            self.waiting[lane] = self.waits_since(self.lanes[lane][0])
        else:
            del self.waiting[lane]
            self.leave_ring(band, client)
        self.bands -= set() if self.rings[band] else {band}

    def _knows(self, job_id: str) -> bool:
        return job_id in self.jobs or self.has_finished(job_id) or job_id in self.cancelled_in_lane

    def _record(self, job: NewJob | UniqueJob) -> Record:
        ready = self._moment(job.due, self.clock.now) or self.clock.now
        expires = self._moment(job.expires, ready)
        return Record(job.priority, job.max_crashes, ready, expires, job.client, job.body)

    def _take_in(self, job: NewJob | UniqueJob) -> None:
        record = self.jobs[job.id] = self._record(job)
        if record.ready > self.clock.now:
            self._schedule(job.id, record.ready)
        else:
            self._line_up(job.id, at_front=job.at_front == "1")

    def _replace(self, first: str, job: UniqueJob) -> None:
        """The one that waits takes what the other brings. Once its time has come it keeps its place."""
        before, record = self.jobs[first], self._record(job)
        if first not in self.scheduled:
            record.band, record.client = before.lane
            self.jobs[first] = record
        elif record.ready > self.clock.now:
            self._move(first, record, record.ready)
            if first in self.retrying:
                self.retrying[first] = record.ready
        else:
            self._unschedule(first)
            self.jobs[first] = record
            self.retrying.pop(first, None)
            self._queue_up(first, self.clock.now)

    def _move(self, job_id: str, record: Record, due: int) -> None:
        """It waits until another time, among the jobs of whoever it belongs to now."""
        is_earlier = due < min(self.scheduled.values())
        if record.client != self.jobs[job_id].client:
            self._unschedule(job_id)
        self.jobs[job_id] = record
        is_awaited = self.due_signal
        self._schedule(job_id, due)
        self.due_signal = is_awaited or is_earlier

    def _come_after(self, first: str, job: UniqueJob) -> None:
        """It waits for the end of the one that runs, and not for ever."""
        self.jobs[job.id] = self._record(job)
        self._schedule(job.id, self.jobs[job.id].ready + job.limit_ms)
        self.digests[first].successor = job.id
        self.digests[job.id] = Note(job.until, job.limit_ms, job.digest)
        self._count("enqueued")

    def _moment(self, text: str, now: int) -> int:
        return (now if text.startswith("+") else 0) + int(text or 0)

    def _line_up(self, job_id: str, *, at_front: bool) -> None:
        made = made_at(job_id)
        if made is None or abs(self.clock.now - made) > SKEW_MS:
            self.waiting_since[job_id] = self.clock.now
        lane = self.jobs[job_id].lane
        self._index(lane, self.clock.now)
        self.lanes[lane].insert(0 if at_front else len(self.lanes[lane]), job_id)

    def _queue_up(self, job_id: str, since: int) -> None:
        self.waiting_since[job_id] = since
        lane = self.jobs[job_id].lane
        self._index(lane, since)
        self.lanes[lane].append(job_id)

    def _give_back(self, job_id: str, *, is_unrun: bool) -> None:
        lane = band, client = self.jobs[job_id].lane
        self._index(lane, self.clock.now)
        if is_unrun and client in self.rings[band] and not self.job_times():  # it has not had its turn
            self._come_first(band, client)
        if job_id not in self.lanes[lane]:  # a torn log may have left it there
            self.lanes[lane].insert(0, job_id)
            self.waiting[lane] = self.waits_since(job_id)

    def _index(self, lane: Lane, since: int, *, wakes: bool = True) -> None:
        """A client that is blocked wakes nobody, unless its lane was empty."""
        band, client = lane
        is_new = lane not in self.waiting
        self.waiting.setdefault(lane, since)
        if client in self.blocked_in[band] and not is_new and not self.is_bulk:
            return
        self.bands.add(band)
        if client not in self.rings[band] and client not in self.blocked_in[band]:
            self._enter(band, client)
        self.work_signal = self.work_signal or wakes

    def waits_since(self, job_id: str) -> int:
        made = made_at(job_id)
        return self.waiting_since.get(job_id, self.clock.now if made is None else made)

    def _held(self, worker: str, entries: Sequence[Any]) -> tuple[list[Any], list[str]]:
        held = self.running[worker]
        return [e for e in entries if e[0] in held], [e[0] for e in entries if e[0] not in held]

    def _end_runs(self, worker: str, entries: Sequence[Entry], ending: str) -> tuple[list[str], int]:
        mine, stale = self._held(worker, entries)
        if mine:
            self._remember(mine)
            self._forget([job_id for job_id, _, _ in mine])
            self._count(ending, len(mine))
        self._end_run(worker, [job_id for job_id, _, _ in mine])
        return stale, len(mine)

    def _end_stopped(self, job_ids: Iterable[str]) -> set[str]:
        """Those that were asked to stop are over."""
        asked = [job_id for job_id in job_ids if job_id in self.cancel_requests]
        ended = {job_id for job_id in asked if job_id in self.jobs}  # else it was over before, and the log was torn
        for job_id in asked:
            if job_id in ended:
                _, keep_ms, _, outcome = self.cancel_requests[job_id].split(" ", 3)
                self._remember([(job_id, int(keep_ms), outcome)])
                self._count("cancelled")
            self._forget([job_id])
        return ended

    def _remember(self, outcomes: Sequence[Entry]) -> None:
        for job_id, keep_ms, outcome in outcomes:
            self.finished.add(job_id)
            if outcome:
                self.results[job_id] = f"{self.clock.now} {keep_ms} {outcome}"
                self.recent_results.append(job_id)
            else:
                self.no_outcome.append(job_id)
        over, most = len(self.results) - self.limits.max_results, self.limits.max_results
        if over > 0 and any(outcome for _, _, outcome in outcomes):
            self._drop_outcomes(min(over + most // 100, DROPPED_AT_ONCE))

    def _drop_outcomes(self, count: int) -> None:
        """Those that finished first: nothing is as old as what trim has moved."""
        old = in_order(self.result_times)[:count]
        recent = self.recent_results[: count - len(old)]
        del self.recent_results[: len(recent)]
        self._delete_outcomes([*old, *recent])

    def _delete_outcomes(self, job_ids: Iterable[str]) -> int:
        """How many there were."""
        deleted = [self.results.pop(job_id, None) for job_id in dict.fromkeys(job_ids)]
        for job_id in self.result_times.keys() - self.results.keys():
            del self.result_times[job_id], self.result_expiry[job_id]
        return len(deleted) - deleted.count(None)

    def times_of(self, job_id: str) -> tuple[int, int]:
        """When a job finished, and until when its outcome is kept; zeros if that cannot be read."""
        found = re.match(r"(\d+) (\d+) ", self.results.get(job_id, ""))
        return (int(found[1]), int(found[1]) + int(found[2])) if found else (0, 0)

    def _expire_outcomes(self) -> tuple[int, bool]:
        """How many outcomes went, and whether there may be more to do."""
        gone, read = due_at(self.result_expiry, self.clock.now)[:DROPPED_AT_ONCE], 0
        is_cut = len(gone) == DROPPED_AT_ONCE
        for job_id in self.recent_results[:READ_AT_ONCE]:
            ended, until = self.times_of(job_id)
            if self.clock.now - PERIOD_MS < ended <= self.clock.now:
                break
            read += 1
            if until > self.clock.now:
                self.result_times[job_id], self.result_expiry[job_id] = ended, until
            else:
                gone.append(job_id)
        del self.recent_results[:read]
        return self._delete_outcomes(gone), is_cut or read == READ_AT_ONCE

    def _rotate(self) -> None:
        """Ids of jobs that finished long ago go."""
        age = self.clock.now - self.clock_state.get("rotated", float("inf"))
        if 0 <= age < PERIOD_MS:
            return
        self.clock_state["rotated"] = self.clock.now
        if age < 0:
            return
        self.finished_before, self.finished = self.finished, set()
        self.no_outcome_before, self.no_outcome = self.no_outcome, []

    def has_finished(self, job_id: str) -> bool:
        """Whether it finished lately."""
        return job_id in self.finished or job_id in self.finished_before

    def _forget(self, job_ids: Sequence[str]) -> None:
        self._let_go(job_ids)
        places: tuple[dict[str, Any], ...] = (self.jobs, self.retrying, self.dead)
        for job_id in job_ids:
            beside = (
                self.waiting_since,
                self.failures,
                self.crashes,
                self.errors,
                self.digests,
                self.cancel_requests,
                self.progress,
            )
            if job_id in self.scheduled:
                self._unschedule(job_id)
            for place in (*places, *beside):
                place.pop(job_id, None)

    def _fail(self, job_id: str, failures: int, line: str) -> None:
        if failures:
            self.failures[job_id] = self.failures.get(job_id, 0) + failures
            self._count("failed")
        self.errors[job_id] = [*self.errors.get(job_id, []), line][-KEPT_ERRORS:]

    def _failed_so(self, job_id: str, line: str) -> bool:
        """Whether the newest failure is of this class."""
        newest = json.loads(self.errors.get(job_id, ["{}"])[-1]).get("error_class", "")
        return "error_class" in line and newest == json.loads(line)["error_class"]

    def _die(self, job_id: str) -> None:
        self.dead[job_id] = self.clock.now
        self._let_go([job_id])
        self._count("dead")

    def _take_back(self, worker: str, guilty: set[str], limit: int) -> list[tuple[str, str]]:
        taken = []
        job_ids = sorted(self.running[worker], reverse=True)[:limit]
        ended = self._end_stopped(job_ids)
        for job_id in job_ids:
            if job_id in ended:
                taken.append((job_id, "cancelled"))
                continue
            if job_id not in self.jobs:
                continue
            if job_id in guilty and self._crash(job_id, worker):
                self._die(job_id)
                taken.append((job_id, "dead"))
            else:
                self._give_back(job_id, is_unrun=job_id not in guilty)
                self.note_unrun(worker, {job_id} - guilty)
                taken.append((job_id, "queued"))
            self._count("reclaimed")
        self._end_run(worker, job_ids)
        return taken

    def _forget_worker(self, worker: str) -> None:
        self.workers.pop(worker, None)
        self.signed_on.pop(worker, None)

    def _audit_workers(self, names: Sequence[str]) -> int:
        """Who holds jobs and is not known counts as dead; who holds none is forgotten. Answers how many were."""
        lost = [name for name in names if name not in self.workers]
        for name in lost:
            if self.running[name]:
                self.workers[name] = self.clock.now
            else:
                del self.signed_on[name]
        return sum(name not in self.signed_on for name in lost)

    def _crash(self, job_id: str, worker: str) -> bool:
        crashes = self.crashes[job_id] = self.crashes.get(job_id, 0) + 1
        allowed = self.jobs[job_id].max_crashes
        error = f"The worker died while it ran this job: crash {crashes}, {allowed} allowed."
        line = {"at": self.clock.now, "attempt": crashes + self.failures.get(job_id, 0), "worker": worker}
        line |= {"error_class": "django_rtq.exceptions.WorkerLost", "error": error, "traceback": ""}
        self._fail(job_id, 0, json.dumps(line, separators=(",", ":")))
        for name in ("failed", "crashed"):
            self._count(name)
        if task := json.loads(self.jobs[job_id].body).get("task"):
            counters = self.tasks[self.clock.now // 3_600_000]
            counters.update(
                [f"failed {task}", f"crashed {task}", f"{'dead' if crashes > allowed else 'retried'} {task}"]
            )
            self.failed_runs[self.clock.now // 60_000][task] += 1
            number, since, _ = self.failing.get(task, (0, self.clock.now, 0))
            self.failing[task] = (number + 1, since, 0)
        return crashes > allowed

    def _contact(self) -> None:
        now, half = self.clock.now, self.limits.lease_ms // 2
        last, hold = self.clock_state.get("contact", now), self.clock_state.get("hold", 0)
        if (silence := now - last) > half:  # an outage: for leases that time has not passed
            self.workers = {worker: deadline + silence for worker, deadline in self.workers.items()}
            self.clock_state["hold"] = hold + silence if hold > last else now + half
        self.clock_state |= {"contact": self.clock.now, "high": self.clock.now}

    def _until(self, moments: dict[str, int]) -> int | None:
        return max(0, min(moments.values()) - self.clock.now) if moments else None
