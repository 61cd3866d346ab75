"""What becomes of runs, and of workers: ends, failures, crashes, leases."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.protocol.model.state import Entry, Part

KEPT_ERRORS = 5


class Runs(Part):
    def held(self, worker: str, entries: Sequence[Any]) -> tuple[list[Any], list[str]]:
        held = self.queue.running[worker]
        return [e for e in entries if e[0] in held], [e[0] for e in entries if e[0] not in held]

    def end_runs(self, worker: str, entries: Sequence[Entry], ending: str) -> tuple[list[str], int]:
        mine, stale = self.held(worker, entries)
        if mine:
            self.queue.outcomes.remember(mine)
            self.queue.places.forget([job_id for job_id, _, _ in mine])
            self.queue.count(ending, len(mine))
        self.end_run(worker, [job_id for job_id, _, _ in mine])
        return stale, len(mine)

    def end_run(self, worker: str, job_ids: Sequence[str], *, are_unrun: bool = False) -> None:
        """The jobs leave the processing list, and others may start in their places."""
        entries = [self.queue.running[worker].pop(job_id) for job_id in job_ids]
        owners = [entry.split(" ", 2)[2] for entry in entries if entry.count(" ") > 1]
        if owners and self.queue.set_limits and are_unrun:
            self.queue.rates.count_starts(owners, -1)
        if owners and self.queue.set_limits:
            self.queue.spent.charge_ended(entries, are_unrun=are_unrun)
            for client in dict.fromkeys(owners):
                self.queue.caps.unblock(client)
            self.queue.work_signal = self.queue.work_signal or bool(self.queue.bands)

    def end_stopped(self, job_ids: Iterable[str]) -> set[str]:
        """Those that were asked to stop are over."""
        asked = [job_id for job_id in job_ids if job_id in self.queue.cancel_requests]
        ended = {
            job_id for job_id in asked if job_id in self.queue.jobs
        }  # else it was over before, and the log was torn
        for job_id in asked:
            if job_id in ended:
                _, keep_ms, _, outcome = self.queue.cancel_requests[job_id].split(" ", 3)
                self.queue.outcomes.remember([(job_id, int(keep_ms), outcome)])
                self.queue.count("cancelled")
            self.queue.places.forget([job_id])
        return ended

    def take_back(self, worker: str, guilty: set[str], limit: int) -> list[tuple[str, str]]:
        taken = []
        job_ids = sorted(self.queue.running[worker], reverse=True)[:limit]
        ended = self.end_stopped(job_ids)
        # What a torn log has kept of a claim names no client.
        is_timed = any(self.queue.running[worker][job_id].count(" ") > 1 for job_id in job_ids[:1])
        for job_id in job_ids:
            if job_id in ended:
                taken.append((job_id, "cancelled"))
                continue
            if job_id not in self.queue.jobs:
                continue
            if job_id in guilty and self._crash(job_id, worker):
                self.die(job_id)
                taken.append((job_id, "dead"))
            else:
                self.queue.places.give_back(job_id, is_unrun=job_id not in guilty, is_timed=is_timed)
                self.queue.spent.note_unrun(worker, {job_id} - guilty)
                taken.append((job_id, "queued"))
            self.queue.count("reclaimed")
        self.end_run(worker, job_ids)
        return taken

    def _crash(self, job_id: str, worker: str) -> bool:
        crashes = self.queue.crashes[job_id] = self.queue.crashes.get(job_id, 0) + 1
        allowed = self.queue.jobs[job_id].max_crashes
        error = f"The worker died while it ran this job: crash {crashes}, {allowed} allowed."
        line = {"at": self.queue.clock.now, "attempt": crashes + self.queue.failures.get(job_id, 0), "worker": worker}
        line |= {"error_class": "django_rtq.exceptions.WorkerLost", "error": error, "traceback": ""}
        self.fail(job_id, 0, json.dumps(line, separators=(",", ":")))
        for name in ("failed", "crashed"):
            self.queue.count(name)
        if task := json.loads(self.queue.jobs[job_id].body).get("task"):
            counters = self.queue.tasks[self.queue.clock.now // 3_600_000]
            counters.update(
                [f"failed {task}", f"crashed {task}", f"{'dead' if crashes > allowed else 'retried'} {task}"]
            )
            self.queue.failed_runs[self.queue.clock.now // 60_000][task] += 1
            number, since, _ = self.queue.failing.get(task, (0, self.queue.clock.now, 0))
            self.queue.failing[task] = (number + 1, since, 0)
        return crashes > allowed

    def fail(self, job_id: str, failures: int, line: str) -> None:
        if failures:
            self.queue.failures[job_id] = self.queue.failures.get(job_id, 0) + failures
            self.queue.count("failed")
        self.queue.errors[job_id] = [*self.queue.errors.get(job_id, []), line][-KEPT_ERRORS:]

    def failed_so(self, job_id: str, line: str) -> bool:
        """Whether the newest failure is of this class."""
        newest = json.loads(self.queue.errors.get(job_id, ["{}"])[-1]).get("error_class", "")
        return "error_class" in line and newest == json.loads(line)["error_class"]

    def die(self, job_id: str) -> None:
        self.queue.dead[job_id] = self.queue.clock.now
        self.queue.unique_jobs.let_go([job_id])
        self.queue.count("dead")

    def may_join(self, taken: Sequence[str], job_id: str, slots: int) -> bool:
        """Jobs with crashes run apart from others, and the more crashes the fewer of them together."""
        group = [*taken, job_id]
        suspects = [each for each in group if each in self.queue.crashes]
        if not suspects:
            return True
        return len(suspects) == len(group) <= min(self._most_beside(each, slots) for each in suspects)

    def _most_beside(self, job_id: str, slots: int) -> int:
        crashes = self.queue.crashes[job_id]
        if crashes >= self.queue.jobs[job_id].max_crashes:
            return min(1, slots)
        return min(slots, max(1, slots >> crashes))

    def contact(self) -> None:
        now, half = self.queue.clock.now, self.queue.limits.lease_ms // 2
        last, hold = self.queue.clock_state.get("contact", now), self.queue.clock_state.get("hold", 0)
        if (silence := now - last) > half:  # an outage: for leases that time has not passed
            self.queue.workers = {worker: deadline + silence for worker, deadline in self.queue.workers.items()}
            self.queue.clock_state["hold"] = hold + silence if hold > last else now + half
        self.queue.clock_state |= {"contact": self.queue.clock.now, "high": self.queue.clock.now}

    def forget_worker(self, worker: str) -> None:
        self.queue.workers.pop(worker, None)
        self.queue.signed_on.pop(worker, None)

    def audit_workers(self, names: Sequence[str]) -> int:
        """Who holds jobs and is not known counts as dead; who holds none is forgotten. Answers how many were."""
        lost = [name for name in names if name not in self.queue.workers]
        for name in lost:
            if self.queue.running[name]:
                self.queue.workers[name] = self.queue.clock.now
            else:
                del self.queue.signed_on[name]
        return sum(name not in self.queue.signed_on for name in lost)

    def until(self, moments: dict[str, int]) -> int | None:
        return max(0, min(moments.values()) - self.queue.clock.now) if moments else None
