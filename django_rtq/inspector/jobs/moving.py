"""Moves jobs that do not run to another queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import WrongState
from django_rtq.inspector.jobs import lost_replies, one_job
from django_rtq.inspector.jobs.dead_letters import STEP, BulkResult, DeadLetters
from django_rtq.inspector.jobs.job_filter import ALL_JOBS, JobFilter
from django_rtq.inspector.jobs.live_jobs import LiveJobs

AT_ONCE = 10  # calls in one round trip: one that searches a lane for an id takes up to 5 ms
_REASONS = {
    "missing": "is not in queue {queue} any more.",
    "there": "is in queue {target} already.",
    "finished": "has finished already.",
    "running": "is running. Only jobs that do not run can be moved.",
    "duplicate": "is unique, and job {other} of the same key is alive in queue {target}.",
    "after": "waits until job {other} has ended: only one job of the same unique key may be alive in a queue.",
    "before": "is unique, and job {other} waits in its queue for its end. Run or cancel that job first.",
    "long": "was in queue {target} before, and its old place there cannot be removed: more than 50,000 jobs of its "
    "client wait in that lane. Move it when there are fewer.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSet:
    """The jobs of one state that match a filter."""

    queue: str
    state: str  # "queued", "scheduled", "retrying" or "dead"
    filter: JobFilter = ALL_JOBS
    until_ms: int  # jobs that were made later, or dead letters that died later, are left out


class JobMover:
    """Moves queued, scheduled and retrying jobs as they are, and queues dead letters in another queue.

    Any thread may use it. Raises BrokerError.
    """

    def __init__(self, broker: Broker, sender: type, live_jobs: LiveJobs, dead_letters: DeadLetters) -> None:
        self._broker, self._sender = broker, sender
        self._live_jobs, self._dead_letters = live_jobs, dead_letters

    def move(self, job_id: str, target: str, queue: str | None = None) -> None:
        """Move a job to another queue; from any queue, if none is named.

        It keeps its id, client, priority, time and failures, and goes to the end of its client's lane. A dead letter
        is queued there with all its attempts. Limits of waiting jobs do not matter. Raises JobNotFound; WrongState for
        a job that runs or is over, or is unique and may not leave or enter; InvalidTask for a name that no queue can
        have.
        """
        queue = queue or self._broker.redis.run(one_job.find(self._broker, job_id, None)).queue
        answer = "there" if queue == target else self._send(queue, [job_id], target)[job_id]
        if answer != "moved":
            verb, _, other = answer.partition(" ")
            raise WrongState(job_id, _REASONS[verb].format(queue=queue, target=target, other=other))

    def move_some(self, queue: str, job_ids: Sequence[str], target: str) -> list[str]:
        """move() for many. Returns the ids of those that were moved; see there why the others were not.

        Raises ValueError if both are the same queue.
        """
        done: list[str] = []
        for start in range(0, len(job_ids), AT_ONCE):
            answers = self._send(queue, job_ids[start : start + AT_ONCE], target)
            done += [each for each, answer in answers.items() if answer == "moved"]
        return done

    def steps(self, jobs: JobSet, target: str, *, cursor: str = "", limit: int = STEP) -> Iterator[BulkResult]:
        """Move all of these jobs, in bounded steps.

        Each step looks at the next `limit` jobs; its cursor lets another call continue there. Repeating a step does no
        harm.
        """
        if jobs.state != "dead":
            found = self._live_jobs.found(jobs.queue, jobs.state, jobs.filter, until_ms=jobs.until_ms)
            act = partial(self.move_some, jobs.queue, target=target)
            yield from found.steps_of(act, cursor=cursor, limit=limit)
            return
        while True:
            ids, cursor = self._dead_letters.next_ids(jobs.queue, jobs.filter, jobs.until_ms, cursor, limit)
            done = self.move_some(jobs.queue, ids, target)
            yield BulkResult(done=done, refused=len(ids) - len(done), cursor=cursor)
            if not cursor:
                return

    def _send(self, queue: str, job_ids: Sequence[str], target: str) -> dict[str, str]:
        """What became of each job. After a lost reply, what is there was moved by the first call."""
        if queue == target:
            raise ValueError(f"The jobs are in queue {queue} already.")
        keys = [self._broker.keys.of(name) for name in (queue, target)]
        calls = [SCRIPTS["move"].call_many(keys, (job_id,)) for job_id in job_ids]
        replies, resent_after = lost_replies.send(self._broker, calls)
        answers = {job_id: reply.decode() for job_id, reply in zip(job_ids, replies, strict=True)}
        if resent_after is not None:
            answers = {job_id: "moved" if answer == "there" else answer for job_id, answer in answers.items()}
        moved = [job_id for job_id, answer in answers.items() if answer == "moved"]
        if moved:
            signals.job_moved.send_robust(self._sender, job_ids=moved, queue=queue, target=target)
        return answers
