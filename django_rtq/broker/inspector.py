"""The Inspector: what people look at, and what they do by hand.

A question costs the same however long the queues are: O(1), or O(what it returns).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from django_rtq import signals
from django_rtq.broker.broker import MAINTAIN_AT_ONCE, PACKET, Broker, get_broker
from django_rtq.broker.details import JobDetails, QueueDetails, RawJob, WorkerDetails
from django_rtq.broker.front import Front, Lookout, Series, queue_details
from django_rtq.broker.listing import DEPTH, EVERY, JobFilter, JobPage, Listing, Row
from django_rtq.broker.ride import QueuePage, Ride
from django_rtq.broker.scripts import SCRIPTS, Argument
from django_rtq.broker.statistics import Clients, Statistics, TaskFigures
from django_rtq.broker.sweeps import (
    LATEST,
    MOST_DEAD,
    STEP,
    Action,
    DeadGroups,
    Selection,
    Sweeper,
    Swept,
    changed_body,
)
from django_rtq.broker.wire import as_dict
from django_rtq.exceptions import JobNotFound, WorkerAlive, WrongState
from django_rtq.job import JobState

CANCELLED = json.dumps({"state": "cancelled"})


class Inspector:
    """Looks at the queues of a broker. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._wire = broker.wire
        self._keys = broker.keys
        self._lookout = Lookout(broker)
        self._listing = Listing(broker)
        self._statistics = Statistics(broker)
        self._sweeper = Sweeper(broker)

    # -- look

    def queues(self) -> list[str]:
        """The names of all queues that were ever used, sorted."""
        return sorted(name.decode() for name in self._wire.one(("SMEMBERS", self._keys.queues), resend=True))

    def overview(self, queues: Iterable[str] | None = None) -> list[QueueDetails]:
        """How full these queues are; of all, when none is named."""
        names = self.queues() if queues is None else list(queues)
        replies = self._wire.all([SCRIPTS["overview"].call(self._keys.of(n), ()) for n in names], resend=True)
        return [queue_details(name, reply) for name, reply in zip(names, replies, strict=True)]

    def queue(self, name: str) -> QueueDetails:
        """How full one queue is; all zero for one that was never used."""
        return self.overview([name])[0]

    def front(self, minutes: int = 60, *, step: int | None = None) -> Front:
        """All that an overview shows, in two round trips: with counters of so many minutes, an even number of steps."""
        minutes = max(1, min(minutes, 1440))
        return self._lookout.front(minutes, step or max(1, minutes // 60))

    def history(self, queue: str, minutes: int = 60, *, step: int | None = None) -> Series:
        """The counters of one queue, as in front()."""
        minutes = max(1, min(minutes, 1440))
        return self._lookout.history(queue, minutes, step or max(1, minutes // 60))

    def workers(self, queues: Iterable[str] | None = None) -> list[WorkerDetails]:
        """Who works on these queues, and what runs there."""
        return self._lookout.workers(None if queues is None else list(queues))

    def processing(self, queues: Iterable[str] | None = None) -> list[WorkerDetails]:
        """workers(), and of each job how long its task usually runs; see RunningJob.looks_hung()."""
        return self._lookout.workers(None if queues is None else list(queues), with_usual=True)

    def listing(
        self,
        queue: str,
        state: str,
        *,
        cursor: str = "",
        limit: int = 50,
        filter: JobFilter = EVERY,
        depth: int = DEPTH,
    ) -> JobPage:
        """A page of the jobs of a queue in one of LISTS. See there for their order."""
        return self._listing.page(queue, state, cursor, limit, filter, depth)

    def clients(self, queue: str, limit: int = 50, *, by: str = "queued") -> Clients:
        """The clients with most jobs that wait (by="queued"), or with most of the work lately (by="share")."""
        return self._statistics.clients(queue, limit, by=by)

    def queue_page(
        self, queue: str, state: str, *, cursor: str = "", limit: int = 50, filter: JobFilter = EVERY, clients: int = 20
    ) -> QueuePage:
        """queue(), listing() and clients() at once: two round trips, where the filter asks for no more."""
        keys = self._keys.of(queue)
        ride = Ride(self._wire, [SCRIPTS["overview"].call(keys, ()), self._statistics.ask_for_clients(queue, clients)])
        page = Listing(self._broker, ride).page(queue, state, cursor, limit, filter, DEPTH)
        overview, served = ride.answers
        return QueuePage(
            details=queue_details(queue, overview),
            page=page,
            clients=self._statistics.read_clients(served, clients, by="queued"),
        )

    def tasks(self, hours: int = 1, queues: Iterable[str] | None = None) -> dict[str, TaskFigures]:
        """How tasks did in the present hour and so many before it, by their names."""
        return self._statistics.tasks(self.queues() if queues is None else queues, max(0, min(hours, 48)))

    def dead_groups(self, queue: str, depth: int = DEPTH) -> DeadGroups:
        """The newest dead letters by task and kind of error, in two round trips."""
        return self._sweeper.groups([queue], depth)[queue]

    def all_dead_groups(self, depth: int = DEPTH) -> dict[str, DeadGroups]:
        """dead_groups() of every queue, in three round trips."""
        return self._sweeper.groups(self.queues(), depth)

    def select(
        self, queue: str, filter: JobFilter = EVERY, *, until_ms: int | None = None, depth: int = MOST_DEAD
    ) -> Selection:
        """How many dead letters a sweep would be about: those that died up to a moment; None: up to now."""
        return self._sweeper.select(queue, filter, until_ms, depth)

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

    def dead(self, queue: str, *, page: int = MAINTAIN_AT_ONCE) -> Iterator[JobDetails]:
        """The dead letters of a queue, the newest first; those that die meanwhile are left out.

        They may be requeued or discarded while this goes on.
        """
        at: tuple[Any, ...] = ()
        key, is_last = self._keys.of(queue).dead, False
        while not is_last:
            pairs, is_last = self._listing.scored(key, at, page, is_newest_first=True)
            rows = [Row(job_id, (score, job_id.decode()), died=b"%d" % score) for score, job_id in pairs]
            for row, job in self._listing.opened(queue, rows):
                at = row.cursor
                if job is not None:
                    yield job

    def statistics(self, queue: str, *, minutes: int = 60) -> dict[int, dict[str, int]]:
        """The counters of the last minutes: minute since 1970 -> name -> number."""
        (time,) = self._wire.all([("TIME",)], resend=True)
        last = int(time[0]) // 60
        wanted = range(last - minutes + 1, last + 1)
        keys = self._keys.of(queue)
        replies = self._wire.all([("HGETALL", keys.stats_of(minute)) for minute in wanted], resend=True)
        return {
            minute: {name.decode(): int(n) for name, n in as_dict(reply).items()}
            for minute, reply in zip(wanted, replies, strict=True)
            if reply
        }

    # -- act

    def cancel(self, job_id: str, queue: str | None = None) -> None:
        """Take a job out before it runs. Raises JobNotFound, and WrongState when it runs or is over."""
        config = self._broker.config
        keep_ms = int(max(config.result_ttl, 120) * 1000)
        for name in self.queues() if queue is None else [queue]:
            answer = self._call(name, "cancel", (config.max_results, job_id, keep_ms, CANCELLED)).decode()
            if answer == "cancelled":
                signals.job_cancelled.send_robust(Inspector, job_id=job_id, queue=name)
                return
            if answer != "missing":
                raise WrongState(job_id, _NOT_CANCELLED[answer])
        raise JobNotFound(job_id)

    def requeue(self, queue: str, job_ids: Sequence[str], *, latest_ms: int = LATEST) -> list[str]:
        """Give dead letters a new life. Returns those that were queued.

        The others are not dead (any more), or unique, and another one like them lives.
        """
        done = self._in_steps(queue, "requeue", job_ids, latest_ms)
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
        if self._call(queue, "requeue_changed", (latest_ms, job_id, body)) != b"queued":
            raise WrongState(job_id, "is not dead any more, died anew, or is unique and another one like it lives.")
        signals.job_requeued.send_robust(Inspector, job_ids=[job_id], queue=queue)

    def discard(self, queue: str, job_ids: Sequence[str], *, latest_ms: int = LATEST) -> list[str]:
        """Throw dead letters away. Returns those that were; the others are not dead (any more)."""
        done = self._in_steps(queue, "discard", job_ids, latest_ms)
        if done:
            signals.job_discarded.send_robust(Inspector, job_ids=done, queue=queue)
        return done

    def sweep(
        self,
        queue: str,
        action: Action,
        filter: JobFilter = EVERY,
        *,
        until_ms: int,
        cursor: str = "",
        limit: int = STEP,
    ) -> Swept:
        """One step of requeueing or discarding all dead letters that fit and died up to a moment, the oldest first.

        Begin with cursor="", and go on with the one that is answered until it is "". To repeat a step does no harm.
        """
        ids, looked_at, cursor = self._sweeper.chosen(queue, filter, until_ms, cursor, limit)
        act = self.requeue if action == "requeue" else self.discard
        return Swept(done=act(queue, ids, latest_ms=until_ms), looked_at=looked_at, cursor=cursor)

    def run_now(self, job_id: str, queue: str | None = None) -> None:
        """Queue a job whose time has not come yet. Raises JobNotFound, and WrongState when it waits for no time."""
        for name in self.queues() if queue is None else [queue]:
            answer = self._call(name, "run_now", (job_id,)).decode()
            if answer == "queued":
                signals.job_promoted.send_robust(Inspector, job_ids=[job_id], queue=name)
                return
            if answer != "missing":
                is_over = answer == "finished"
                raise WrongState(job_id, "is finished already." if is_over else "does not wait for a time (any more).")
        raise JobNotFound(job_id)

    def release_worker(self, worker: str, queues: Iterable[str] | None = None) -> list[str]:
        """Take back the jobs of a worker whose lease is over, now. Returns their ids; WorkerAlive while it lasts."""
        taken: list[str] = []
        for name in self.queues() if queues is None else queues:
            call = SCRIPTS["release_worker"].call(self._keys.of(name), (worker,))
            status, *pairs = (part.decode() for part in self._wire.one(call, resend=True))
            if status == "alive":
                raise WorkerAlive(worker)
            taken += pairs[::2]
            if pairs:
                queued = [job_id for job_id, where in zip(pairs[::2], pairs[1::2], strict=True) if where == "queued"]
                buried = [job_id for job_id in pairs[::2] if job_id not in queued]
                signals.job_reclaimed.send_robust(
                    Inspector, queue=name, worker=worker, job_ids=queued, buried_ids=buried
                )
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

    def _call(self, queue: str, name: str, arguments: Sequence[Argument]) -> Any:
        return self._wire.one(SCRIPTS[name].call(self._keys.of(queue), arguments), resend=True)

    def _in_steps(self, queue: str, name: str, job_ids: Sequence[str], latest_ms: int) -> list[str]:
        """Several calls in a packet; each is short, because others wait for Redis too."""
        keys = self._keys.of(queue)
        steps = [job_ids[start : start + MAINTAIN_AT_ONCE] for start in range(0, len(job_ids), MAINTAIN_AT_ONCE)]
        done: list[str] = []
        for start in range(0, len(steps), PACKET):
            calls = [SCRIPTS[name].call(keys, (latest_ms, *step)) for step in steps[start : start + PACKET]]
            done += [job_id.decode() for reply in self._wire.all(calls, resend=True) for job_id in reply]
        return done


_FIND = (
    "record",
    "due",
    "died",
    "failures",
    "crashes",
    "errors",
    "outcome",
    "finished",
    "worker",
    "held",
    "lease",
    "now_ms",
)
_NOT_CANCELLED = {
    "running": "is running already, so it cannot be taken out before it runs.",
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
