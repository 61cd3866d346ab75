"""The heartbeat of a supervisor: renews the leases of its processes, and reclaims jobs with expired leases.

It runs in the supervisor because a job that holds the interpreter lock (GIL) would block a thread of its own process.
After an outage of Redis leases are longer (D50). What an idle worker sends in a minute: D68.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from django_rtq.core import signals
from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.broker.scripts import own_version
from django_rtq.core.broker.worker_broker import (
    CancelRequests,
    Renewed,
    WorkerBroker,
    earliest_seconds,
    read_cancel_requests,
)
from django_rtq.core.conf.config import project_name
from django_rtq.core.extension import Chore, parts
from django_rtq.core.jobs.job import about_jobs
from django_rtq.core.threads import Loop
from django_rtq.core.worker.operating_system import memory_bytes
from django_rtq.core.worker.shared_memory import MAX_NAME_BYTES, Revoked, SharedState
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerRefused, BrokerUnavailable, FormatMismatch

T = TypeVar("T")
logger = logging.getLogger("django_rtq")

REPAIR_CALLS = 20  # of the script that looks for lost jobs, for 100 records each, while there are some
START_SECONDS = 0.04  # until the next heartbeat while a process has not signed on yet: then its jobs can be cancelled
CHORE_SECONDS = 1.0  # until the next one while a chore has more to do
MAX_CHORE_SECONDS = 1.0  # after which a heartbeat leaves what remains to the next one; less where leases are short
LiveProcesses = Callable[[], Sequence[tuple[int, SharedState]]]  # process id and shared memory of each


class Heartbeat(Loop):
    """Renews leases, five times in two leases. Runs earlier when a lease of any worker is about to expire."""

    name = "heartbeat"

    def __init__(
        self,
        broker: WorkerBroker,
        queues: Sequence[str],
        processes: LiveProcesses,
        *,
        promotes: bool,
        on_cancel_requests: Callable[[CancelRequests], None] = lambda requests: None,
        supervisor_info: Callable[[], Mapping[str, Argument]] = dict,
    ) -> None:
        # After an outage nothing is reclaimed for half a lease time: every supervisor has to renew within it.
        super().__init__(max_delay_seconds=min(5.0, broker.config.lease_seconds / 4))
        self._broker = broker
        self._queues = list(queues)
        self._processes = processes
        self._promotes = promotes
        # A silence of half a lease is an outage (lua/lib/workers.lua): stay well below, also when this machine is slow.
        lease = broker.config.lease_seconds
        self._interval = max(lease / 3, min(lease * 0.4, lease / 2 - 1.5))
        self._on_cancel_requests = on_cancel_requests
        self._supervisor_info = supervisor_info
        self._chore_seconds = min(MAX_CHORE_SECONDS, lease / 4 - self._interval / 2)
        first, later = ([c for make in parts(of) for c in make(broker, queues)] for of in ("duties", "chores"))
        self._of_apps: list[Chore] = [*first, *later]
        #: What follows, each with what was read for it, or else of the queues, and until a moment (time.monotonic()).
        #: True: it goes on soon.
        self._chores: dict[str, Callable[[Any, float], object]] = {
            **{chore.name: chore.do for chore in first},
            "promotion and repairs": self._tend,
            **{chore.name: chore.do for chore in later},
        }
        self._failing: set[str] = set()  # what has failed the last time, and was logged
        self._crash_loop = ""
        self._stand_in = ""  # the name under which the supervisor has signed on, instead of processes that crash
        #: Redis holds data in another format: the worker has to exit.
        self.mismatch: FormatMismatch | None = None
        #: Called then.
        self.on_mismatch: Callable[[], None] = lambda: None
        self._host, self._pid = socket.gethostname(), os.getpid()

    def begin(self) -> None:
        """A first heartbeat, before there are processes. An outage is no error: the worker will wait for Redis.

        Raises BrokerError for what waiting does not fix.
        """
        try:
            self._broker.check_types(self._queues)
            self.tick()
        except BrokerRefused:
            raise
        except (BrokerUnavailable, BrokerFull):
            return

    def tick(self) -> float:
        """Renew, reclaim if a lease has expired; then the chores. What fails stops nothing else."""
        started, processes = time.monotonic(), self._processes()
        # Read before the infos: a process that takes its name during this tick is in the next one, which comes soon.
        interval = self._interval if all(shared.worker for _, shared in processes) else START_SECONDS
        self._apart("signing on", self._update_stand_in)
        infos = self._infos(processes)
        try:
            reads = {chore.name: chore.reads for chore in self._of_apps}
            renewed, replies = self._broker.heartbeat(self._queues, infos, promote=self._promotes, reads=reads)
        except FormatMismatch as error:
            self.mismatch = error
            self.on_mismatch()
            raise
        unknown = {name.decode() for of_queue in renewed.values() for name in of_queue.unknown}
        for _, shared in processes:
            if shared.worker in infos:
                shared.renewed_at = -started if shared.worker in unknown else started
        if self._stand_in in unknown:
            self._stand_in = ""
        expired = [queue for queue, of_queue in renewed.items() if of_queue.lease_ms == 0]
        for queue in expired:
            earliest = self._apart(f"reclaiming jobs of queue {queue}", partial(self._reclaim, queue))
            interval = interval if earliest is None else min(interval, earliest + 0.01)
        if not expired and (seconds := earliest_seconds(renewed.values())) is not None:
            interval = min(interval, seconds + 0.01)
        self._apart("cancelling jobs", partial(self._on_cancel_requests, read_cancel_requests(renewed.values())))
        until = time.monotonic() + self._chore_seconds
        for name, chore in self._chores.items():
            if self._apart(name, partial(chore, replies.get(name, renewed), until)):
                interval = min(interval, CHORE_SECONDS)
        return interval

    def _apart(self, what: str, act: Callable[[], T]) -> T | None:
        """Do what must not keep anything else from being done. If it fails, that is logged, until it succeeds again."""
        try:
            answer = act()
        except Exception as error:
            if what not in self._failing and not self._stopped.is_set():  # else its connection was closed
                trace = None if isinstance(error, BrokerError) else error
                is_away = isinstance(error, BrokerUnavailable) and not isinstance(error, BrokerRefused)
                level = logging.WARNING if is_away else logging.ERROR
                logger.log(level, "%s (%s) failed, others go on: %s", self.name, what, error, exc_info=trace)
                self._failing.add(what)
            return None
        self._failing.discard(what)
        return answer

    def _infos(self, processes: Sequence[tuple[int, SharedState]]) -> dict[str, dict[str, Argument]]:
        """By worker: those of the processes that are not frozen, and of the one that stands in for a crash loop."""
        infos = {
            shared.worker: self.worker_info(pid, shared)
            for pid, shared in processes
            # A process whose jobs the watchdog has reclaimed looks frozen: not renewed until it takes a new name.
            if shared.worker and shared.revoked is not Revoked.ALL
        }
        if self._stand_in:
            infos[self._stand_in] = {**self._common_info(), "slots": 0, "crash_loop": self._crash_loop}
        return infos

    def _reclaim(self, queue: str) -> float | None:
        seconds, taken = self._broker.reclaim(queue)
        if taken:
            signals.send_reclaimed(Heartbeat, queue, "", taken)
        return seconds

    def _tend(self, renewed: Mapping[str, Renewed], until: float) -> None:
        promoted, lost, refused = self._broker.tend(renewed)
        signals.send_promoted(Heartbeat, promoted)
        for queue, number in lost.items():
            self._apart(f"repairing queue {queue}", partial(self._repair_jobs, queue, number, until))
        if refused:
            raise refused[0]

    def _repair_jobs(self, queue: str, number: int, until: float) -> None:
        """Look for jobs that are in no place. If their number is unknown, look at few records each time."""
        for _ in range(REPAIR_CALLS if number > 0 else 1):
            repaired = self._broker.repair_jobs(queue)
            number -= len(repaired)
            if repaired:
                logger.warning(
                    "queue %s: jobs had lost their place in Redis, most likely because its append-only file was cut "
                    "off, and are queued again: %s",
                    queue, ", ".join(job_id for job_id, _ in repaired), extra=about_jobs([i for i, _ in repaired]),
                )  # fmt: skip
                signals.send_reclaimed(Heartbeat, queue, "", [pair for pair in repaired if pair[1] == "cancelled"])
            if number <= 0 or time.monotonic() > until:
                return

    def tell_crash_loop(self, reason: str) -> None:
        """Say how processes crash again and again before they run a job; "": they do not. For the main thread."""
        began, self._crash_loop = reason and not self._crash_loop, reason
        if began:
            self.interrupt()

    def _update_stand_in(self) -> None:
        """While processes crash before they run a job, the supervisor signs on itself, so that people see it wait."""
        if not self._stand_in and self._crash_loop:
            supervisor = str(self._supervisor_info().get("supervisor_name", ""))
            name = f"{supervisor}-{secrets.token_hex(4)}"[-MAX_NAME_BYTES:]
            self._broker.sign_on(self._queues, name)
            self._stand_in = name
        elif self._stand_in and not self._crash_loop:
            self._sign_off()

    def _sign_off(self) -> None:
        self._broker.sign_off(self._queues, self._stand_in)
        self._stand_in = ""

    def close(self) -> None:
        """Sign off, if the supervisor had signed on."""
        if self._stand_in:
            with suppress(BrokerError):  # its lease expires
                self._sign_off()

    def _common_info(self) -> dict[str, Argument]:
        info: dict[str, Argument] = {
            "host": self._host,
            "pid": self._pid,
            "supervisor": self._pid,
            "queues": ",".join(self._queues),
            "version": own_version(),
            **self._supervisor_info(),
        }
        if project := project_name():
            info["project"] = project
        for chore in self._of_apps:
            info |= chore.info()
        if version := self._broker.config.version:
            info["project_version"] = version
        return info

    def worker_info(self, pid: int, shared: SharedState) -> dict[str, Argument]:
        """What people see of a process. It calls this itself, too, for each of its names."""
        jobs_done, claimed_at = shared.last_claim()
        info: dict[str, Argument] = {
            **self._common_info(),
            "pid": pid,
            "quiet": int(shared.is_quiet),
            "resting": int(shared.is_quiet and shared.is_resting),
            "jobs_done": jobs_done,
            "slots": shared.slots,
            "up_seconds": f"{time.monotonic() - shared.made_at:.0f}",
        }
        memory = memory_bytes(pid)
        if memory is not None:
            info["memory"] = memory
        if claimed_at:
            info["claim_seconds"] = f"{time.monotonic() - claimed_at:.3f}"
        return info
