"""The heartbeat of a supervisor: renews the leases of its processes, and reclaims jobs with expired leases.

It runs in the supervisor because a job that holds the interpreter lock (GIL) would block a thread of its own process.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from django_rtq import __version__, signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.messages import CancelRequest
from django_rtq.broker.redis.commands import Argument
from django_rtq.exceptions import BrokerError
from django_rtq.threads.loop import Loop
from django_rtq.worker.memory import memory_bytes
from django_rtq.worker.shared_entries import Revoked
from django_rtq.worker.shared_memory import MAX_NAME_BYTES, SharedState

START_SECONDS = 0.2  # until the next heartbeat while a process has not signed on yet
LiveProcesses = Callable[[], Sequence[tuple[int, SharedState]]]  # process id and shared memory of each


class Heartbeat(Loop):
    """Renews leases, five times in two leases. Runs earlier when a lease of any worker is about to expire."""

    name = "heartbeat"

    def __init__(
        self,
        broker: Broker,
        queues: Sequence[str],
        processes: LiveProcesses,
        *,
        promotes: bool,
        supervisor: str = "",
        on_cancel_requests: Callable[[Sequence[CancelRequest]], None] = lambda requests: None,
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
        self._supervisor = supervisor
        self._on_cancel_requests = on_cancel_requests
        self._crash_loop = ""
        self._stand_in = ""  # the name under which the supervisor has signed on, instead of processes that crash
        self._audit_cursors: dict[str, int] = {queue: 0 for queue in queues}
        self._host = socket.gethostname()

    def tick(self) -> float:
        """Renew, in one round trip. Reclaim only if a lease has expired."""
        interval = self._interval
        started, processes = time.monotonic(), self._processes()
        # Read before the infos: a process that takes its name during this tick is in the next one, which comes soon.
        is_starting = any(not shared.worker for _, shared in processes)
        infos = {
            shared.worker: self._worker_info(pid, shared)
            for pid, shared in processes
            if shared.worker and not _looks_frozen(shared)
        }
        self._update_stand_in()
        if self._stand_in:
            infos[self._stand_in] = {**self._supervisor_info(), "slots": 0, "crash_loop": self._crash_loop}
        earliest, promoted, requests, unknown = self._broker.heartbeat(
            self._queues, infos, self._audit_cursors, promote=self._promotes
        )
        for _, shared in processes:
            if shared.worker in infos and shared.worker not in unknown:
                shared.renewed_at = started
        if self._stand_in in unknown:
            self._stand_in = ""
        signals.send_promoted(Heartbeat, promoted)
        self._on_cancel_requests(requests)
        if earliest is not None and earliest <= 0:
            earliest = self._reclaim()
        if is_starting:
            interval = START_SECONDS
        return interval if earliest is None else min(interval, earliest + 0.01)

    def _reclaim(self) -> float | None:
        earliest: list[float] = []
        for queue in self._queues:
            seconds, taken = self._broker.reclaim(queue)
            if taken:
                signals.send_reclaimed(Heartbeat, queue, "", taken)
            if seconds is not None:
                earliest.append(seconds)
        return min(earliest, default=None)

    def tell_crash_loop(self, reason: str) -> None:
        """Say how processes crash again and again before they run a job; "": they do not. For the main thread."""
        began, self._crash_loop = reason and not self._crash_loop, reason
        if began:
            self.interrupt()

    def _update_stand_in(self) -> None:
        """While processes crash before they run a job, the supervisor signs on itself, so that people see it wait."""
        if not self._stand_in and self._crash_loop:
            name = f"{self._supervisor}-{secrets.token_hex(4)}"[-MAX_NAME_BYTES:]
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

    def _supervisor_info(self) -> dict[str, Argument]:
        info: dict[str, Argument] = {
            "host": self._host,
            "pid": os.getpid(),
            "supervisor": os.getpid(),
            "supervisor_name": self._supervisor,
            "queues": ",".join(self._queues),
            "version": __version__,
        }
        if version := self._broker.config.version:
            info["project_version"] = version
        return info

    def _worker_info(self, pid: int, shared: SharedState) -> dict[str, Argument]:
        jobs_done, claimed_at = shared.last_claim()
        info: dict[str, Argument] = {
            **self._supervisor_info(),
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


def _looks_frozen(shared: SharedState) -> bool:
    """Whether the watchdog has reclaimed its jobs: its lease is not renewed until it takes a new name."""
    return shared.revoked is Revoked.ALL
