"""Random faults, recorded, so that every extra run can be traced to one of them."""

import itertools
import os
import random
import re
import signal
import time
from collections import defaultdict
from contextlib import suppress
from typing import NamedTuple

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.control import WorkerCommand, send_command
from django_rtq.exceptions import WorkerNotFound
from tests.support.apps import Place
from tests.support.waiting import wait_until

STOP_LEASES = (1.1, 1.8)  # how long a worker is stopped, in leases
HANG_LEASES = (0.2, 1.5)  # how long Redis hangs
QUIET_LEASES = (0.2, 1.0)  # how long workers are quiet
LAST = 6  # runs of a process that may have ended in its last moment: it has three slots at the most


class Fault(NamedTuple):
    """What was done to a process. To a supervisor: to its children as well."""

    began: float
    ended: float
    pid: int


class Run(NamedTuple):
    """A start of a job, as the journal has it."""

    at: float
    pid: int
    parent: int
    attempt: int


class FaultInjector:
    """Kills, stops, silences and cuts off the workers of a test, and lets their Redis hang."""

    def __init__(self, seed, redis, server, readers, start, *, lease_seconds):
        self._random = random.Random(seed)
        self._redis = redis
        self._server = server
        self._readers = readers
        self._start = start
        self._lease_seconds = lease_seconds
        self._stopped = {}  # worker -> when it may go on
        self._quiet = {}  # supervisor -> when it may go on
        self.workers = [start(0), start(1)]
        self.started = list(self.workers)
        self.faults = []
        self.counts = defaultdict(int)

    def act(self):
        """One fault."""
        self.release()
        kinds = {
            self.kill_child: 6,
            self.kill_supervisor: 1,
            self.stop_worker: 2,
            self.cut_connections: 3,
            self.forget_scripts: 2,
            self.hang_redis: 2,
            self.quiet_workers: 2,
        }
        (act,) = self._random.choices(list(kinds), list(kinds.values()))
        act()
        self.counts[act.__name__] += 1

    def release(self, *, all_of_them=False):
        """Let those go on that were stopped for long enough."""
        for worker, until in list(self._stopped.items()):
            if all_of_them or time.monotonic() >= until:
                del self._stopped[worker]
                with suppress(ProcessLookupError):
                    worker.kill_group(signal.SIGCONT)
                self._note(worker.pid, 5.0)  # it goes on with what it held, perhaps later than it was to
        for name, until in list(self._quiet.items()):
            if all_of_them or time.monotonic() >= until:
                del self._quiet[name]
                send_command(get_broker(), name, WorkerCommand.WORK)  # whoever works for it now, under whatever names

    @property
    def children(self):
        """Process ids of the children that live, of all workers."""
        return [child for worker in self.workers for child in worker.children]

    def kill_child(self):
        if children := self.children:
            child = self._random.choice(children)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            self._note(child)

    def kill_supervisor(self):
        number = self._random.randrange(2)
        worker = self.workers[number]
        self._stopped.pop(worker, None)
        worker.kill_group(signal.SIGKILL)
        self._note(worker.pid)
        worker.wait()
        self.workers[number] = self._start(number)
        self.started.append(self.workers[number])

    def stop_worker(self):
        worker = self._random.choice(self.workers)
        if worker not in self._stopped:
            seconds = self._random.uniform(*STOP_LEASES) * self._lease_seconds
            worker.kill_group(signal.SIGSTOP)
            self._stopped[worker] = time.monotonic() + seconds
            self._note(worker.pid, 2 * seconds + 1)  # it is late in going on when the machine is busy

    def cut_connections(self):
        for client in self._redis.clients_of_ours():
            self._redis.client_kill_filter(_id=client["id"])

    def forget_scripts(self):
        self._redis.script_flush()

    def hang_redis(self):
        """No fault that explains a second run: nobody's lease ends while nobody could renew it."""
        until = time.monotonic() + self._random.uniform(*HANG_LEASES) * self._lease_seconds
        self._server.pause()
        try:
            wait_until(lambda: time.monotonic() >= until)
        finally:
            self._server.resume()

    def quiet_workers(self):
        workers = [worker for worker in self._readers.workers() if worker.supervisor_name]
        if workers:
            worker = self._random.choice(workers)
            with suppress(WorkerNotFound):
                Place(readers=self._readers).workers[worker.name].quiet()
                self._quiet[worker.supervisor_name] = (
                    time.monotonic() + self._random.uniform(*QUIET_LEASES) * self._lease_seconds
                )

    def _note(self, pid, seconds=0.0):
        now = time.monotonic()
        self.faults.append(Fault(now, now + seconds, pid))


def terminations(workers, entries):
    """The children that supervisors killed because a job was to be terminated, as their logs have it."""
    last = {entry.pid: entry.at for entry in entries}  # what a dead process wrote last
    killed = [int(pid) for worker in workers for pid in re.findall(r"process (\d+) killed: job", worker.log)]
    return [Fault(last[pid], last[pid] + 5.0, pid) for pid in killed if pid in last]


def runs_by_name(entries):
    """The starts of every job, in order."""
    runs = defaultdict(list)
    for entry in entries:
        name, parent, attempt = entry.name.split(" ")
        runs[name].append(Run(entry.at, entry.pid, int(parent), int(attempt)))
    return runs


def is_hit_by(run, faults):
    """Whether something has happened to the process of a run."""
    return any(fault.pid in (run.pid, run.parent) for fault in faults)


def long_over(ends):
    """The runs that had ended, by name, process and attempt, but for the last of each process.

    Between a job's last line and the note on the page that it is over there is a moment, and its process may be killed
    just then.
    """
    of_process = defaultdict(list)
    for name, found in ends.items():
        for end in found:
            of_process[end.pid].append((end.at, name, end.attempt))
    return {(name, pid, attempt) for pid, of in of_process.items() for _, name, attempt in sorted(of)[:-LAST]}


def unexplained(runs, faults, over, *, slack=0.2):
    """The runs too many before which nothing had happened to the run before that explains it."""
    left = []
    for name, starts in runs.items():
        for before, again in itertools.pairwise(starts):
            # Who was stopped with jobs in its hands runs them late, when others have run them.
            pids = {before.pid, before.parent, again.pid, again.parent}
            if (name, before.pid, before.attempt) in over:
                pids.remove(before.pid)  # its supervisor told what was over
            hit = [f for f in faults if f.pid in pids]
            if not any(f.began <= again.at + slack and f.ended >= before.at - slack for f in hit):
                left.append((name, before, again))
    return left
