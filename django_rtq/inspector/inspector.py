"""The Inspector: what people look at (see onlooker.py), and what they do by hand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from django_rtq import signals
from django_rtq.broker.broker import MAINTAIN_AT_ONCE, get_broker
from django_rtq.broker.control import CancelAnswer, WorkerCommand, send_command, supervisor_of
from django_rtq.broker.scripts import AT_ONCE, SCRIPTS, Argument
from django_rtq.exceptions import JobNotFound, LeaseNotExpired, WorkerNotFound, WrongState
from django_rtq.inspector import lost_replies
from django_rtq.inspector.dead_letters import (
    LATEST,
    STEP,
    Act,
    BulkAction,
    BulkResult,
    changed_body,
    steps_for_ids,
)
from django_rtq.inspector.job_list import EVERY, JobFilter
from django_rtq.inspector.queries import Queries
from django_rtq.jobs.job import JobState
from django_rtq.jobs.outcome import CANCELLED_UNRUN


class Inspector(Queries):
    """Looks at the queues of a broker, and acts on them. Any thread may use it."""

    def cancel(self, job_id: str, queue: str | None = None, *, terminate: bool = False) -> CancelAnswer:
        """Take a job out before it runs; ask one that runs to stop, or let its process be killed with `terminate`.

        Raises JobNotFound, and WrongState when it is over.
        """
        config = self._broker.config
        keep_ms = int(max(config.result_ttl, 120) * 1000)
        how = "terminate" if terminate else "ask"
        for name in self.queues() if queue is None else [queue]:
            word, worker = self._call(name, "cancel", (config.max_results, job_id, keep_ms, CANCELLED_UNRUN, how))
            answer = word.decode()
            if answer == "asked":
                self._wake(worker.decode())
                return CancelAnswer.ASKED
            if answer == "cancelled":
                signals.job_cancelled.send_robust(Inspector, job_id=job_id, queue=name)
            if answer in ("cancelled", "already"):
                return CancelAnswer.CANCELLED
            if answer != "missing":
                raise WrongState(job_id, _NOT_CANCELLED[answer])
        raise JobNotFound(job_id)

    def quiet_worker(self, worker: str) -> None:
        """Let the rtq_worker of this worker claim nothing more, finish what runs, and stay. Raises WorkerNotFound."""
        self._order(worker, WorkerCommand.QUIET)

    def wake_worker(self, worker: str) -> None:
        """Let a quiet rtq_worker work again. Raises WorkerNotFound."""
        self._order(worker, WorkerCommand.WORK)

    def stop_worker(self, worker: str) -> None:
        """Let the rtq_worker of this worker finish what runs and leave, as at a SIGTERM. Raises WorkerNotFound."""
        self._order(worker, WorkerCommand.STOP)

    def requeue(self, queue: str, job_ids: Sequence[str], *, latest_ms: int = LATEST) -> list[str]:
        """Give dead letters a new life. Returns those that were queued.

        The others are not dead (any more), or unique, and another one like them lives.
        """
        done = self._in_steps(queue, "requeue", job_ids, latest_ms, lost_replies.requeued)
        if done:
            signals.job_requeued.send_robust(Inspector, job_ids=done, queue=queue)
        return done

    def requeue_changed(
        self, queue: str, job_id: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, latest_ms: int = LATEST
    ) -> None:
        """Give a dead letter a new life with other arguments, which the caller has checked.

        Raises InvalidArguments or PayloadTooLarge for what cannot be sent, and WrongState when it is not dead.
        """
        job = self.find(job_id, queue)
        if job.state is not JobState.DEAD or not job.task:
            raise WrongState(job_id, f"is {job.state}, not dead." if job.task else "cannot be read.")
        body = changed_body(job, args, kwargs, most_bytes=self._broker.config.max_payload_bytes)
        call = SCRIPTS["requeue_changed"].call(self._keys.of(queue), (latest_ms, job_id, body))
        (answer,), resent_after = lost_replies.send(self._broker, [call])
        is_ours = resent_after is not None and lost_replies.has_body(self._broker, queue, job_id, body)
        if answer != b"queued" and not is_ours:
            raise WrongState(job_id, "is not dead any more, died anew, or is unique and another one like it lives.")
        signals.job_requeued.send_robust(Inspector, job_ids=[job_id], queue=queue)

    def discard(self, queue: str, job_ids: Sequence[str], *, latest_ms: int = LATEST) -> list[str]:
        """Throw dead letters away. Returns those that were; the others are not dead (any more)."""
        done = self._in_steps(queue, "discard", job_ids, latest_ms, lost_replies.discarded)
        if done:
            signals.job_discarded.send_robust(Inspector, job_ids=done, queue=queue)
        return done

    def bulk_steps(
        self,
        queue: str,
        action: BulkAction,
        filter: JobFilter = EVERY,
        *,
        until_ms: int,
        cursor: str = "",
        limit: int = STEP,
    ) -> Iterator[BulkResult]:
        """Requeue or discard all dead letters that match and died up to a moment (see select()), the oldest first.

        Each step of the iterator searches `limit` dead letters. A step says with which cursor another call would go on.
        It does no harm to repeat a step.
        """
        act = self._act(action)
        while True:
            ids, cursor = self._sweeper.next_ids(queue, filter, until_ms, cursor, limit)
            yield BulkResult(done=act(queue, ids, latest_ms=until_ms), cursor=cursor)
            if not cursor:
                return

    def bulk_steps_for_ids(
        self, queues: Iterable[str], action: BulkAction, job_ids: Sequence[str]
    ) -> Iterator[BulkResult]:
        """Requeue or discard these dead letters, each of which is in one of the queues."""
        return steps_for_ids(self._act(action), queues, job_ids)

    def run_now(self, job_id: str, queue: str | None = None) -> None:
        """Queue a job whose time has not come yet.

        Raises JobNotFound, and WrongState when it waits for no time, or for the end of one that is like it (G9).
        """
        for name in self.queues() if queue is None else [queue]:
            (reply,), resent_after = lost_replies.send(
                self._broker, [SCRIPTS["run_now"].call(self._keys.of(name), (job_id,))]
            )
            answer = reply.decode()
            if answer == "queued" or (
                resent_after is not None and answer != "missing" and self._is_underway(job_id, name)
            ):
                signals.job_promoted.send_robust(Inspector, job_ids=[job_id], queue=name)
                return
            if answer != "missing":
                raise WrongState(job_id, _why_not_now(answer))
        raise JobNotFound(job_id)

    def release_worker(self, worker: str, queues: Iterable[str] | None = None) -> list[str]:
        """Take back the jobs of a worker whose lease is over, now. Returns their ids; LeaseNotExpired before."""
        taken: list[str] = []
        for name in self.queues() if queues is None else queues:
            left = 1
            while left:
                status, left, *words = self._call(name, "reclaim_worker", (worker, AT_ONCE))
                if status == b"alive":
                    raise LeaseNotExpired(worker)
                pairs = [word.decode() for word in words]
                taken += pairs[::2]
                signals.send_reclaimed(Inspector, name, worker, list(zip(pairs[::2], pairs[1::2], strict=True)))
        return taken

    def pause(self, queue: str) -> bool:
        """Let nothing more of a queue be claimed. False: it was paused already."""
        return bool(self._call(queue, "pause", ()) == b"paused")

    def resume(self, queue: str) -> bool:
        """Let a queue be worked on again. False: it was not paused."""
        return bool(self._call(queue, "resume", ()) == b"resumed")

    def purge(self, queue: str) -> int:
        """Throw away some of the jobs that wait. Returns how many; call it again until it is 0."""
        while True:
            thrown, looked_at = self._call(queue, "purge", (MAINTAIN_AT_ONCE,))
            if thrown or not looked_at:  # else they had all been cancelled
                return int(thrown)

    # -- inside

    def _act(self, action: BulkAction) -> Act:
        return self.requeue if action == "requeue" else self.discard

    def _wake(self, worker: str) -> None:
        """The supervisor looks at once, and not at its next heartbeat. The job is asked in any case."""
        supervisor = supervisor_of(self._broker, worker)
        if supervisor:
            send_command(self._broker, supervisor)

    def _order(self, worker: str, order: WorkerCommand) -> None:
        supervisor = supervisor_of(self._broker, worker)
        if not supervisor:
            raise WorkerNotFound(worker)
        send_command(self._broker, supervisor, order)

    def _call(self, queue: str, name: str, arguments: Sequence[Argument]) -> Any:
        return self._redis.execute_one(SCRIPTS[name].call(self._keys.of(queue), arguments), resend=True)

    def _is_underway(self, job_id: str, queue: str) -> bool:
        """Whether it waits for no time, and is not dead either."""
        return self.find(job_id, queue).state in (JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED)

    def _in_steps(
        self, queue: str, name: str, job_ids: Sequence[str], latest_ms: int, read_back: lost_replies.ReadBack
    ) -> list[str]:
        """Short calls, each by itself: others wait for Redis too, and it would run a packet of them to its end."""
        keys = self._keys.of(queue)
        done: list[str] = []
        for start in range(0, len(job_ids), MAINTAIN_AT_ONCE):
            step = job_ids[start : start + MAINTAIN_AT_ONCE]
            (reply,), resent_after = lost_replies.send(self._broker, [SCRIPTS[name].call(keys, (latest_ms, *step))])
            told = [job_id.decode() for job_id in reply]
            untold = [job_id for job_id in step if job_id not in set(told)] if resent_after is not None else []
            done += told + (read_back(self._broker, queue, untold, resent_after or 0.0) if untold else [])
        return done


_NOT_CANCELLED = {
    "dead": "is dead: discard it instead.",
    "finished": "is finished already.",
}


@lru_cache(maxsize=1)
def get_inspector() -> Inspector:
    """The inspector of this process. Raises ConfigurationError."""
    return Inspector(get_broker())


os.register_at_fork(after_in_child=get_inspector.cache_clear)


@receiver(setting_changed)
def forget_inspector(*, setting: str, **kwargs: object) -> None:
    """Tests that override the settings get what they set."""
    if setting in ("RTQ", "CACHES", "DEBUG"):
        get_inspector.cache_clear()


def _why_not_now(answer: str) -> str:
    verb, _, first = answer.partition(" ")
    if verb == "after":
        return f"runs when job {first} is over: of these two only one may live."
    return "is finished already." if verb == "finished" else "does not wait for a time (any more)."
