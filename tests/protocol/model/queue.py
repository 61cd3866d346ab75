"""What each verb does to every key of a queue: a specification in plain Python, without Redis.

A verb is a method of `Queue`; it returns what the Broker or the Readers returns. Jobs are claimed
one by one here, while the script takes whole batches: nobody must be able to tell by the turns.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from django_rtq.core.broker.messages import NewJob
from tests.protocol.model.caps import Caps
from tests.protocol.model.outcomes import Outcomes
from tests.protocol.model.paused_tasks import HELD, PausedTasks
from tests.protocol.model.places import Places
from tests.protocol.model.rates import Rates
from tests.protocol.model.remembering import Remembering
from tests.protocol.model.room import Room
from tests.protocol.model.runs import Runs
from tests.protocol.model.state import (
    Ahead,
    Clock,
    Entry,
    Limits,
    State,
    due_at,
    in_order,
    lane_name,
    with_task,
)
from tests.protocol.model.times import Times
from tests.protocol.model.turns import Turns
from tests.protocol.model.unique_jobs import UniqueJobs

WORKERS_AT_ONCE = 10  # whose leases ran out, in one call of reclaim


class Queue(State):
    """One queue, and all that may happen to its jobs."""

    def __init__(self, clock: Clock, limits: Limits, delayed_first: bool = False) -> None:
        super().__init__(clock, limits, delayed_first)
        self.places = Places(self)
        self.order = Turns(self)
        self.spent = Times(self)
        self.caps = Caps(self)
        self.rates = Rates(self)
        self.room = Room(self)
        self.unique_jobs = UniqueJobs(self)
        self.paused_tasks = PausedTasks(self)
        self.outcomes = Outcomes(self)
        self.runs = Runs(self)
        self.remembering = Remembering(self)

    # -- by whoever has work to be done

    def enqueue(self, jobs: Iterable[NewJob], all_or_none: bool = False) -> list[str]:
        answers, jobs, before = [], list(jobs), self.copied()
        is_alone = len(jobs) == 1 and not any("max_waiting=" in text for text in self.set_limits.values())
        for job in jobs:
            self.is_bulk = not job.digest and (not is_alone or bool(job.due))
            answers.append(self._enqueue_one(job))
        self.is_bulk = False
        return self._all_or_none(jobs, answers, before) if all_or_none else answers

    def _all_or_none(self, jobs: Sequence[NewJob], answers: list[str], before: dict[str, Any]) -> list[str]:
        """Nothing has happened if one did not fit."""
        if not any(answer.startswith("full") for answer in answers):
            return answers
        vars(self).update(before)
        added = [
            answer == "ok" or (answer.startswith("after") and job.id not in self.jobs)
            for job, answer in zip(jobs, answers, strict=True)
        ]
        return ["full" if is_added else answer for is_added, answer in zip(added, answers, strict=True)]

    def _enqueue_one(self, job: NewJob) -> str:
        first = self.unique_jobs.holder(job.digest)
        if first and self.unique_jobs.successor_of(first) == job.id:
            return f"after {first}"
        if self.places.knows(job.id):
            return "exists"
        is_after = (
            bool(first)
            and job.on_conflict == "rerun"
            and self._is_under_way(first)
            and not self.unique_jobs.successor_of(first)
        )
        if (not first or is_after) and (refusal := self.room.refusal(job.client)):
            return refusal
        if not first:
            self.places.take_in(job)
            self.unique_jobs.hold(job)
            self.count("enqueued")
            return "ok"
        if job.on_conflict == "replace" and not self._is_under_way(first):
            self.unique_jobs.replace(first, job)
        if job.on_conflict == "rerun" and (successor := self.unique_jobs.successor_of(first)):
            self.places.move(successor, self.places.record(job), self.scheduled[successor])
        elif job.on_conflict == "rerun" and self._is_under_way(first):
            self.unique_jobs.come_after(first, job)
            return f"after {first}"
        return f"duplicate {first}"

    def _is_under_way(self, job_id: str) -> bool:
        """It runs, or will go on with what it remembers."""
        return self.places.runs(job_id) or self.remembering.wait_of(job_id) is not None

    # -- by workers

    def sign_on(self, worker: str) -> None:
        self.runs.contact()
        self.workers[worker] = self.clock.now + self.limits.lease_ms
        self.signed_on[worker] = self.clock.now - 10**13

    def sign_off(self, worker: str) -> bool:
        if self.running[worker]:
            return False
        self.runs.forget_worker(worker)
        self.work_signal = self.work_signal or bool(
            self.bands
        )  # it may have taken the token that would have woken another
        return True

    def claim(self, worker: str, wanted: int, slots: int, aside: Iterable[str] = ()) -> tuple[str, dict[str, str]]:
        """Status, and the jobs and their attempts. The clients that stand aside get none."""
        jobs: dict[str, str] = {}
        status, self.standing_aside = "ok", frozenset(aside)
        while len(jobs) < wanted and (lane := self.order.whose_turn()):
            job_id = self.lanes[lane][0]
            if not self.runs.may_join(list(jobs), job_id, slots):
                status = "suspect"
                break
            jobs[job_id] = str(1 + self.failures.get(job_id, 0) + self.crashes.get(job_id, 0))
            owner = f" {lane[1]}" if self.set_limits else ""
            self.running[worker][job_id] = f"{jobs[job_id]} {self.clock.now}{owner}"
            self.spent.charge_start(lane[1])
            self.places.leave_lane(lane)
            self.order.drop_debts()  # before others are placed, in a ring that is left without work
        self.order.drop_debts()
        self.signal_work()
        return "suspect" if self.crashes.keys() & jobs.keys() else status, jobs

    def signal_work(self) -> None:
        """What a claim leaves."""
        self.work_signal = bool(self.bands) and not (self.set_limits and self.caps.is_full())

    def ack(self, worker: str, entries: Sequence[Entry]) -> list[str]:
        return self.runs.end_runs(worker, entries, "succeeded")[0]

    def expire(self, worker: str, entries: Sequence[Entry]) -> list[str]:
        return self.runs.end_runs(worker, entries, "expired")[0]

    def finish_cancel(self, worker: str, entries: Sequence[Entry]) -> list[str]:
        return self.runs.end_runs(worker, entries, "cancelled")[0]

    def report_progress(self, worker: str, job_id: str, line: str) -> str:
        if job_id not in self.running[worker]:
            return "stale"
        self.progress[job_id] = f"{self.clock.now} {line}"
        return "ok"

    def retry(self, worker: str, entries: Sequence[tuple[str, int, int, str]]) -> list[str]:
        mine, stale = self.runs.held(worker, entries)
        ended = self.runs.end_stopped(entry[0] for entry in mine)
        for job_id, delay_ms, failures, line in mine:
            if job_id in ended:
                continue
            self.places.schedule(job_id, self.clock.now + delay_ms)
            self.retrying[job_id] = self.clock.now + delay_ms
            if failures or not self.runs.failed_so(job_id, line):
                self.runs.fail(job_id, failures, line)
        self.runs.end_run(worker, [entry[0] for entry in mine])
        return stale

    def bury(self, worker: str, entries: Sequence[Entry]) -> list[str]:
        mine, stale = self.runs.held(worker, entries)
        ended = self.runs.end_stopped(entry[0] for entry in mine)
        for job_id, failures, line in mine:
            if job_id not in ended:
                self.runs.die(job_id)
                self.runs.fail(job_id, failures, line)
        self.runs.end_run(worker, [entry[0] for entry in mine])
        return stale

    def suspend(self, worker: str, entries: Sequence[tuple[str, int, str]]) -> list[str]:
        mine, stale = self.runs.held(worker, entries)
        ended = self.runs.end_stopped(entry[0] for entry in mine)
        for job_id, ms, text in mine:
            if job_id not in ended and job_id in self.jobs:
                self.remembering.suspend(job_id, ms, text)
        self.runs.end_run(worker, [entry[0] for entry in mine])
        return stale

    def release(self, worker: str, job_ids: Sequence[str]) -> list[str]:
        mine, stale = self.runs.held(worker, [(job_id,) for job_id in job_ids])
        ended = self.runs.end_stopped(entry[0] for entry in mine)
        for (job_id,) in reversed(mine):
            if job_id not in ended:
                self.places.give_back(job_id, is_unrun=True)
        self.runs.end_run(worker, [entry[0] for entry in mine], are_unrun=True)
        return stale

    # -- by supervisors and schedulers

    def renew(self, workers: Sequence[str], pause_ms: int = 0) -> tuple[int | None, set[str]]:
        now, state = self.clock.now, self.clock_state
        is_due = now - state.get("tended", 0) >= pause_ms or now >= state.get("first_end", 0)
        if is_due:
            self.runs.contact()
            self.outcomes.rotate()
        known = [worker for worker in workers if worker in self.workers]
        self.workers.update({worker: now + self.limits.lease_ms for worker in known})
        if is_due:
            first_end = min(self.workers.values(), default=now + self.limits.lease_ms)
            self.clock_state |= {"tended": now, "promoted": now, "first_end": first_end}
        return self.runs.until(self.workers) if is_due else None, set(workers) - set(known)

    def reclaim(self, limit: int) -> tuple[int | None, list[tuple[str, str]]]:
        self.runs.contact()
        if self.clock.now < self.clock_state.get("hold", 0):
            return self.clock_state["hold"] - self.clock.now, []
        taken: list[tuple[str, str]] = []
        for worker in due_at(self.workers, self.clock.now)[:WORKERS_AT_ONCE]:
            taken += self.runs.take_back(worker, set(self.running[worker]), limit - len(taken))
            if not self.running[worker]:
                self.runs.forget_worker(worker)
        return self.runs.until(self.workers), taken

    def reclaim_child(self, worker: str, guilty: Iterable[str], limit: int) -> tuple[int, list[tuple[str, str]]]:
        taken = self.runs.take_back(worker, set(guilty), limit)
        if not self.running[worker]:
            self.runs.forget_worker(worker)
        return len(self.running[worker]), taken

    def promote(self, limit: int) -> tuple[int | None, list[str]]:
        self.clock_state["promoted"] = self.clock.now
        due = due_at(self.scheduled, self.clock.now)[:limit]
        has_more_than_limit = len(due) == limit
        by_time = ceil(limit / 4) if has_more_than_limit else len(due)
        promoted = due[:by_time]
        looked_at = self._take_turns(promoted, limit - by_time) if has_more_than_limit or not due else set()
        promoted += [job_id for job_id in due if job_id not in promoted][: limit - len(promoted)]
        looked_at |= {self.jobs[job_id].client for job_id in promoted}
        for job_id in promoted:
            if self.delayed_first:
                self.jobs[job_id].band = Ahead.of(self.jobs[job_id].band)
            self.places.queue_up(job_id, self.scheduled.pop(job_id))
            self.retrying.pop(job_id, None)
        for client in looked_at:
            self._look_again(client)
        timed = {job_id: due for job_id, due in self.scheduled.items() if due < HELD}
        has_more = self.paused_tasks.return_more(limit)
        self.rates.promote_rates(limit)
        return 0 if has_more else self.runs.until(timed | self.next_starts), promoted

    def _take_turns(self, promoted: list[str], wanted: int) -> set[str]:
        """Add the shares of the next clients. Answers who was looked at."""
        clients, end = due_at(self.scheduled_by_client, self.clock.now)[:wanted], len(promoted) + wanted
        looked_at = set()
        for client in clients:
            if len(promoted) < end:
                looked_at.add(client)
                share = min(ceil(wanted / len(clients)), end - len(promoted))
                due = due_at(self.scheduled_of(client), self.clock.now)
                promoted += [job_id for job_id in due if job_id not in promoted][:share]
        return looked_at

    def _look_again(self, client: str) -> None:
        """At its next job's time; if that is over, after all others."""
        left = self.scheduled_of(client)
        if left:
            self.scheduled_by_client[client] = max(self.clock.now, min(left.values()))
        else:
            self.scheduled_by_client.pop(client, None)

    def trim(self, limit: int) -> list[int]:
        self.outcomes.rotate()
        gone, has_more = self.outcomes.expire_outcomes()
        over = len(self.dead) - self.limits.max_dead_letters
        dead = in_order(self.dead)[:over] if over > 0 else due_at(self.dead, self.clock.now - self.limits.dead_ms)
        self.places.forget(dead[:limit])
        self.outcomes.delete_logs(dead[:limit])
        return [gone, len(dead[:limit]), int(has_more or len(dead) >= limit)]

    def roll_up(self, most: int) -> int:
        present = self.clock.now // 3_600_000
        start = max(self.clock_state.get("rolled_up", 0), present - 47)
        end = min(start + most, present)
        for hour in range(start, end):
            sums: Counter[str] = Counter()
            for minute in range(60 * hour, 60 * hour + 60):
                sums.update(self.stats.get(minute, {}))
            if sums:
                self.hours[hour] = sums
        self.clock_state["rolled_up"] = end
        return present - end

    def audit(self, start: int, limit: int) -> int:
        if self.jobs:
            self.clock_state["counted"] = self.clock.now
        if start == 0:
            self.spent.recount()
        names = {lane_name(lane): lane for lane in self.waiting}
        seen = in_order({name: self.waiting[lane] for name, lane in names.items()})[start : start + limit]
        for lane in [names[name] for name in seen]:
            if self.lanes[lane]:
                if lane[1] in self.blocked_in[lane[0]]:
                    self.caps.block(*lane)
                    self.caps.unblock(lane[1])
                else:
                    self.places.index(lane, self.clock.now, wakes=lane[1] not in self.rings[lane[0]])
                self.waiting[lane] = self.places.waits_since(self.lanes[lane][0])
        self.work_signal = self.work_signal or bool(self.bands)
        gone = self.runs.audit_workers(in_order(self.signed_on)[start : start + limit])
        is_over = len(seen) < limit and len(self.signed_on) + gone - start < limit
        next_start = 0 if is_over else start + limit - gone
        if start or next_start:
            self.clock_state["repaired"] = next_start
        return next_start

    # -- by people

    def cancel(self, job_id: str, keep_ms: int, outcome: str, how: str = "ask") -> str:
        if job_id not in self.jobs:
            if "cancelled" in self.results.get(job_id, ""):
                return "already"
            return "finished" if job_id in self.results or self.outcomes.has_finished(job_id) else "missing"
        if job_id in self.dead:
            return "dead"
        outcome = with_task(outcome, self.jobs[job_id].body)
        if self.places.runs(job_id):
            if how == "terminate" or job_id not in self.cancel_requests:
                self.cancel_requests[job_id] = f"{how} {keep_ms} {self.limits.max_results} {outcome}"
            return "asked"
        lane = None if job_id in self.scheduled else self.jobs[job_id].lane
        if lane is not None:
            self.cancelled_in_lane[job_id] = lane
        self.outcomes.remember([(job_id, keep_ms, outcome)])
        self.places.forget([job_id])
        if lane is not None:
            self.places.trim_cancelled(lane)
        self.count("cancelled")
        return "cancelled"

    def requeue(self, job_ids: Sequence[str]) -> list[str]:
        queued = []
        for job_id in job_ids:
            note = self.digests.get(job_id)
            if job_id not in self.dead or (note and self.unique_jobs.holder(note.digest)):
                continue
            queued.append(job_id)
            if note:
                self.unique[note.digest] = job_id
            del self.dead[job_id]
            self.failures.pop(job_id, None)
            self.crashes.pop(job_id, None)
            record = self.jobs[job_id]
            record.ready, record.expires = self.clock.now, 0
            record.band = record.band.priority if isinstance(record.band, Ahead) else record.band
            self.places.queue_up(job_id, self.clock.now)
        if queued:
            self.count("requeued", len(queued))
        return queued

    def requeue_changed(self, latest: int, job_id: str, body: str) -> list[str]:
        queued = self.requeue([job_id]) if self.dead.get(job_id, latest + 1) <= latest else []
        if queued:
            self.jobs[job_id].body = body
        return queued

    def run_now(self, job_id: str) -> str:
        if job_id not in self.jobs:
            return "finished" if job_id in self.results or self.outcomes.has_finished(job_id) else "missing"
        if job_id not in self.scheduled:
            return "elsewhere"
        if self.scheduled[job_id] >= HELD and self.paused_tasks.pause_of(job_id):
            return "paused"
        first = self.unique.get(self.digests[job_id].digest, "") if job_id in self.digests else ""
        if first and first in self.digests and self.unique_jobs.successor_of(first) == job_id:
            return f"after {first}"
        self.places.unschedule(job_id)
        self.retrying.pop(job_id, None)
        self.places.queue_up(job_id, self.clock.now)
        self.remembering.end_wait(job_id)
        return "queued"

    def release_worker(self, worker: str, limit: int) -> list[str | int]:
        if self.workers.get(worker, 0) > self.clock.now:
            return [-1]
        left, taken = self.reclaim_child(worker, list(self.running.get(worker, ())), limit)
        return [left, *(word for pair in taken for word in pair)]

    def discard(self, job_ids: Sequence[str]) -> list[str]:
        gone = [job_id for job_id in job_ids if job_id in self.dead]
        self.places.forget(gone)
        self.outcomes.delete_logs(gone)
        if gone:
            self.count("discarded", len(gone))
        return gone

    def pause(self) -> bool:
        changed = self.paused is None
        self.paused = self.clock.now if changed else self.paused
        return changed

    def resume(self) -> bool:
        changed, self.paused = self.paused is not None, None
        self.work_signal = self.work_signal or changed
        return changed

    def purge(self, limit: int, client: str | None = None) -> list[int]:
        """First what is scheduled, then lane after lane."""
        job_ids = in_order(self.scheduled if client is None else self.scheduled_of(client))[:limit]
        if not job_ids and (lane := self.places.lane_to_purge(client)):
            job_ids = self.lanes[lane][:limit]
            self.places.trim(lane, len(job_ids))
            if not self.lanes[lane]:
                self.places.leave_ring(*lane)
        thrown = [job_id for job_id in job_ids if not self.cancelled_in_lane.pop(job_id, None)]
        self.places.forget(thrown)
        self.outcomes.delete_logs(job_ids)
        if job_ids:
            self.count("purged", len(thrown))
        return [len(thrown), len(job_ids)]


def claim(
    queues: Sequence[Queue], worker: str, wanted: int, slots: int, aside: Sequence[tuple[int, str]] = ()
) -> dict[int, tuple[str, dict[str, str]]]:
    """From the first queues that have any. Of those with something to tell: status, and the jobs and their attempts.

    `aside`: the place of a queue, and a client that gets no job of it.
    """
    answers: dict[int, tuple[str, dict[str, str]]] = {}
    for place, queue in enumerate(queues):
        if not wanted:
            break
        if not queue.bands:
            continue
        if worker not in queue.workers:
            # What others have assigned may run; the worker hears of this when it asks again.
            return answers if any(jobs for _, jobs in answers.values()) else {**answers, place: ("unknown", {})}
        if (room := queue.caps.open_limits()) <= 0 or queue.paused is not None:
            continue
        answers[place] = status, jobs = queue.claim(
            worker, int(min(wanted, room)), slots, [client for at, client in aside if at == place]
        )
        wanted, slots = wanted - len(jobs), 0 if jobs else slots
        wanted = 0 if status == "suspect" else wanted
    unknown = [place for place, queue in enumerate(queues) if worker not in queue.workers]
    if not answers and unknown:
        return {unknown[0]: ("unknown", {})}
    return answers
