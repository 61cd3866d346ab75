"""The Inspector: what people look at, and what they do by hand.

A question costs the same however long the queues are: O(1), or O(what it returns).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from django_rtq import signals
from django_rtq.broker.broker import MAINTAIN_AT_ONCE, Broker, get_broker
from django_rtq.broker.details import JobDetails, Progress, QueueDetails, RawJob, RunningJob, WorkerDetails
from django_rtq.broker.errands import Order, send_order, supervisor_of
from django_rtq.broker.scripts import SCRIPTS, Argument
from django_rtq.exceptions import JobNotFound, WorkerNotFound, WrongState
from django_rtq.job import StrEnum


class CancelAnswer(StrEnum):
    """What became of the wish to cancel a job."""

    CANCELLED = "cancelled"  # it will not run (again)
    ASKED = "asked"  # it runs, and was asked to stop: it is cancelled when it does, unless it succeeds before


CANCELLED = json.dumps({"state": "cancelled"})


class Inspector:
    """Looks at the queues of a broker. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._wire = broker.wire
        self._keys = broker.keys

    # -- look

    def queues(self) -> list[str]:
        """The names of all queues that were ever used, sorted."""
        return sorted(name.decode() for name in self._wire.one(("SMEMBERS", self._keys.queues), resend=True))

    def overview(self, queues: Iterable[str] | None = None) -> list[QueueDetails]:
        """How full these queues are; of all, when none is named."""
        names = self.queues() if queues is None else list(queues)
        replies = self._wire.all([SCRIPTS["overview"].call(self._keys.of(n), ()) for n in names], resend=True)
        return [_queue_details(name, reply) for name, reply in zip(names, replies, strict=True)]

    def workers(self, queues: Iterable[str] | None = None) -> list[WorkerDetails]:
        """Who works on these queues, and what runs there."""
        names = self.queues() if queues is None else list(queues)
        lists = self._wire.all([("ZRANGE", self._keys.of(name).workers, 0, -1) for name in names], resend=True)
        workers = sorted({worker.decode() for found in lists for worker in found})
        notes = self._wire.all([("HGETALL", self._keys.worker(worker)) for worker in workers], resend=True)
        left = self._wire.all([("PTTL", self._keys.worker(worker)) for worker in workers], resend=True)
        (time,) = self._wire.all([("TIME",)], resend=True)
        now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
        running = self._running(names, workers, now_ms)
        return [
            _worker_details(name, _as_dict(note), running[name], left_ms)
            for name, note, left_ms in zip(workers, notes, left, strict=True)
        ]

    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        """All that is known of a job. Raises JobNotFound."""
        return self.find_any(job_id, self.queues() if queue is None else [queue])

    def find_any(self, job_id: str, queues: Iterable[str]) -> JobDetails:
        """find() in several queues, in one round trip. Raises JobNotFound."""
        names, script = list(queues), SCRIPTS["find"]
        replies = self._wire.all([script.call(self._keys.of(name), (job_id,)) for name in names], resend=True)
        for name, reply in zip(names, replies, strict=True):
            details = RawJob(id=job_id, queue=name, **dict(zip(_FIND, reply, strict=True))).details()
            if details:
                return details
        raise JobNotFound(job_id)

    def states_of(self, jobs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The states of many jobs, (queue, id) each, in one round trip; those that are not known are left out."""
        script = SCRIPTS["find"]
        replies = self._wire.all([script.call(self._keys.of(queue), (job,)) for queue, job in jobs], resend=True)
        raw = [
            RawJob(id=job, queue=queue, **dict(zip(_FIND, reply, strict=True)))
            for (queue, job), reply in zip(jobs, replies, strict=True)
        ]
        found = [job.details() for job in raw]
        return {(job.queue, job.id): str(job.state) for job in found if job}

    def dead(self, queue: str, *, page: int = MAINTAIN_AT_ONCE) -> Iterator[JobDetails]:
        """The dead letters of a queue, the newest first; those that die meanwhile are left out.

        They may be requeued or discarded while this goes on.
        """
        keys = self._keys.of(queue)
        cursor: tuple[float, bytes] | None = None
        most = page
        while True:
            top: Argument = "+inf" if cursor is None else repr(cursor[0])
            found = self._wire.one(
                ("ZREVRANGEBYSCORE", keys.dead, top, "-inf", "WITHSCORES", "LIMIT", 0, most), resend=True
            )
            pairs = [(float(found[i + 1]), found[i]) for i in range(0, len(found), 2)]
            fresh = [pair for pair in pairs if cursor is None or pair < cursor]
            if fresh:
                yield from self._details(queue, [(job_id, b"%d" % score) for score, job_id in fresh])
                cursor = fresh[-1]
            elif len(pairs) < most:
                return
            else:
                most *= 2  # more died in one millisecond than fit on a page

    def statistics(self, queue: str, *, minutes: int = 60) -> dict[int, dict[str, int]]:
        """The counters of the last minutes: minute since 1970 -> name -> number."""
        (time,) = self._wire.all([("TIME",)], resend=True)
        last = int(time[0]) // 60
        wanted = range(last - minutes + 1, last + 1)
        keys = self._keys.of(queue)
        replies = self._wire.all([("HGETALL", keys.stats_of(minute)) for minute in wanted], resend=True)
        return {
            minute: {name.decode(): int(n) for name, n in _as_dict(reply).items()}
            for minute, reply in zip(wanted, replies, strict=True)
            if reply
        }

    # -- act

    def cancel(self, job_id: str, queue: str | None = None, *, terminate: bool = False) -> CancelAnswer:
        """Take a job out before it runs; ask one that runs to stop, or let its process be killed with `terminate`.

        Raises JobNotFound, and WrongState when it is over.
        """
        config = self._broker.config
        keep_ms = int(max(config.result_ttl, 120) * 1000)
        how = "terminate" if terminate else "ask"
        for name in self.queues() if queue is None else [queue]:
            word, worker = self._call(name, "cancel", (config.max_results, job_id, keep_ms, CANCELLED, how))
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
        self._order(worker, Order.QUIET)

    def wake_worker(self, worker: str) -> None:
        """Let a quiet rtq_worker work again. Raises WorkerNotFound."""
        self._order(worker, Order.WORK)

    def stop_worker(self, worker: str) -> None:
        """Let the rtq_worker of this worker finish what runs and leave, as at a SIGTERM. Raises WorkerNotFound."""
        self._order(worker, Order.STOP)

    def requeue(self, queue: str, job_ids: Sequence[str]) -> list[str]:
        """Give dead letters a new life. Returns those that were queued.

        The others are not dead (any more), or unique, and another one like them lives.
        """
        done = self._in_steps(queue, "requeue", job_ids)
        if done:
            signals.job_requeued.send_robust(Inspector, job_ids=done, queue=queue)
        return done

    def discard(self, queue: str, job_ids: Sequence[str]) -> list[str]:
        """Throw dead letters away. Returns those that were; the others are not dead (any more)."""
        done = self._in_steps(queue, "discard", job_ids)
        if done:
            signals.job_discarded.send_robust(Inspector, job_ids=done, queue=queue)
        return done

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

    def _wake(self, worker: str) -> None:
        """The supervisor looks at once, and not at its next heartbeat. The job is asked in any case."""
        supervisor = supervisor_of(self._broker, worker)
        if supervisor:
            send_order(self._broker, supervisor)

    def _order(self, worker: str, order: Order) -> None:
        supervisor = supervisor_of(self._broker, worker)
        if not supervisor:
            raise WorkerNotFound(worker)
        send_order(self._broker, supervisor, order)

    def _call(self, queue: str, name: str, arguments: Sequence[Argument]) -> Any:
        return self._wire.one(SCRIPTS[name].call(self._keys.of(queue), arguments), resend=True)

    def _in_steps(self, queue: str, name: str, job_ids: Sequence[str]) -> list[str]:
        done: list[str] = []
        for start in range(0, len(job_ids), MAINTAIN_AT_ONCE):
            reply = self._call(queue, name, job_ids[start : start + MAINTAIN_AT_ONCE])
            done += [job_id.decode() for job_id in reply]
        return done

    def _details(self, queue: str, dead: list[tuple[bytes, bytes]]) -> Iterator[JobDetails]:
        keys, ids = self._keys.of(queue), [job_id for job_id, _ in dead]
        rows = self._wire.all(
            [("HMGET", key, *ids) for key in (keys.jobs, keys.failures, keys.crashes, keys.errors)], resend=True
        )
        for (job_id, died), record, failures, crashes, errors in zip(dead, *rows, strict=True):
            raw = RawJob(
                id=job_id.decode(),
                queue=queue,
                record=record or b"",
                died=died,
                failures=failures or b"",
                crashes=crashes or b"",
                errors=errors or b"",
            )
            details = raw.details()
            if details:
                yield details

    def _running(self, queues: list[str], workers: list[str], now_ms: int) -> dict[str, list[RunningJob]]:
        pairs = [(worker, queue) for worker in workers for queue in queues]
        lists = self._wire.all([("HGETALL", self._keys.of(q).running(w)) for w, q in pairs], resend=True)
        found = [
            (worker, queue, job_id, held)
            for (worker, queue), reply in zip(pairs, lists, strict=True)
            for job_id, held in _as_dict(reply).items()
        ]
        commands = [
            ("HGET", getattr(self._keys.of(q), key), job_id)
            for key in ("jobs", "stopping", "progress")
            for _, q, job_id, _ in found
        ]
        replies, size = self._wire.all(commands, resend=True), len(found)
        running: dict[str, list[RunningJob]] = {worker: [] for worker in workers}
        for place, (worker, queue, job_id, held) in enumerate(found):
            record, wish, progress = replies[place::size]
            attempt, claimed_ms = held.split(b" ")
            job = RawJob(id=job_id.decode(), queue=queue, record=record or b"", held=held).details()
            running[worker].append(
                RunningJob(
                    id=job_id.decode(),
                    queue=queue,
                    task=job.task if job else "",
                    client=job.client if job else "",
                    attempt=int(attempt),
                    seconds=max(0.0, (now_ms - int(claimed_ms)) / 1000),
                    progress=Progress.read(progress) if progress else None,
                    is_stopping=wish is not None,
                )
            )
        return running


_FIND = "record due died failures crashes errors outcome finished worker held wish progress".split()
_NOT_CANCELLED = {
    "dead": "is dead: discard it instead.",
    "finished": "is finished already.",
}


def _queue_details(name: str, reply: list[Any]) -> QueueDetails:
    now_ms, live, scheduled, retrying, dead, running, lanes, oldest, paused = reply
    return QueueDetails(
        name=name,
        paused=paused != b"",
        queued=max(0, live - scheduled - retrying - dead - running),
        scheduled=scheduled,
        retrying=retrying,
        running=running,
        dead=dead,
        oldest_seconds=max(0.0, (now_ms - float(oldest)) / 1000) if oldest else None,
        clients=lanes,
    )


def _worker_details(name: str, note: dict[bytes, bytes], running: list[RunningJob], left_ms: int) -> WorkerDetails:
    claim = note.get(b"claim_seconds", b"")
    last_seen = max(0.0, (int(note[b"kept_ms"]) - left_ms) / 1000) if b"kept_ms" in note else None
    return WorkerDetails(
        name=name,
        host=note.get(b"host", b"").decode(),
        pid=int(note.get(b"pid", b"0")),
        queues=[queue for queue in note.get(b"queues", b"").decode().split(",") if queue],
        running=running,
        last_seen_seconds=last_seen,
        last_claim_seconds=float(claim) + last_seen if claim and last_seen is not None else None,
        jobs_done=int(note.get(b"jobs_done", b"0")),
        supervisor_name=note.get(b"errands", b"").decode(),
        is_quiet=note.get(b"quiet") == b"1",
    )


def _as_dict(reply: Any) -> dict[bytes, bytes]:
    """The flat list that HGETALL answers."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


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
