"""From one Redis to four shards, and the old server is drained, while everything is killed: no job is lost.

Old and new producers and workers run all the time. The drain command, workers, supervisors and servers are killed.
With RTQ_TEST_NIGHTLY=1 there are 100,000 waiting jobs and 100 faults; RTQ_SHARDS_WAITING says another number of jobs.
RTQ_TORTURE_SEED says which faults.
"""

import itertools
import json
import os
import random
import signal
import time
from collections import Counter, defaultdict
from contextlib import suppress
from typing import NamedTuple

import pytest
from django.test import override_settings

from django_rtq import JobFailed
from django_rtq.broker.brokers import close_brokers
from django_rtq.testing import drain
from testproject.redis_server import PrivateRedis
from tests.app import tasks
from tests.shards.conftest import waiting
from tests.shards.producer import ACCEPTED, CLIENTS
from tests.support.forked_commands import ForkedCommand
from tests.support.line_files import whole_lines
from tests.support.nightly import IS_NIGHTLY
from tests.support.redis_server import Redis
from tests.support.waiting import wait_until
from tests.worker.conservation import assert_conserved, records
from tests.worker.processes import WorkerProcess, is_alive
from tests.worker.torture_faults import Run, runs_by_name

pytestmark = pytest.mark.long

WAITING = int(os.environ.get("RTQ_SHARDS_WAITING", "100000" if IS_NIGHTLY else "400"))
DELAYED, DEAD, FINISHED = WAITING // 10, WAITING // 100, WAITING // 100
SHARDS = 4
PERIOD_SECONDS = 1.0 if IS_NIGHTLY else 0.3  # between two faults
FAULTS = 100 if IS_NIGHTLY else 12  # as long as fewer have happened, the producer of before goes on
WORK_SECONDS = 0.002
SETTLED_SECONDS = 1.0  # after the end of a run, unless the server is away
OPTIONS = {"LEASE_SECONDS": 5.0, "MAX_RESULTS": 10_000_000}
MOST_SECONDS = 1800 if IS_NIGHTLY else 120


class Fault(NamedTuple):
    """Something that was killed, and may be back at `ended`."""

    began: float
    ended: float
    pids: frozenset  # the processes; none: a server


class Fleet:
    """Servers, producers, workers and the drain command, and what is done to them."""

    def __init__(self, servers, folder, dice):
        self._servers, self._folder, self._dice = servers, folder, dice
        self._numbers = itertools.count()
        self._commands, self.workers, self.drain = {}, {}, None
        self.faults, self.counts = [], Counter()
        self.is_closed = False
        self.is_last = False  # whether the drain has begun after the last job for the old server

    # -- processes

    def environment(self, *, shards):
        places = {number: server.url for number, server in enumerate(self._servers)}
        if self.is_closed:
            places[0] = {"redis": places[0], "closed": True}
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "RTQ_DATABASE": str(self._folder / "db.sqlite3"),
            "RTQ_REDIS_URL": self._servers[0].url,
            "RTQ_TEST_OPTIONS": json.dumps({**({"SHARDS": places} if shards else {}), **OPTIONS}),
            ACCEPTED: str(self._folder / "accepted"),
        }

    def command(self, *arguments, shards=True):
        log = self._folder / f"{arguments[0]}-{next(self._numbers)}.log"
        return ForkedCommand(arguments, self.environment(shards=shards), log)

    def produce(self, kind, *, shards):
        code = f"from tests.shards.producer import produce; produce({kind!r})"
        self._commands[kind] = self.command("shell", "-c", code, shards=shards)

    def stop_producer(self, kind):
        self._commands[kind].send_signal(signal.SIGKILL)
        self._commands.pop(kind).wait(30)

    def work(self, kind, *, shards):
        arguments = ["--processes", 1, "--name", kind]
        log = self._folder / f"worker-{next(self._numbers)}.log"
        self.workers[kind] = WorkerProcess(arguments, self.environment(shards=shards), log)

    def end(self):
        """Whatever became of them."""
        for kind in list(self._commands):
            self.stop_producer(kind)
        if self.drain is not None:
            self.drain.send_signal(signal.SIGKILL)
            self.drain.wait(30)
        for worker in self.workers.values():
            for pid in family_of(worker):  # supervisors of shards lead groups of their own
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            worker.end()

    # -- faults

    def harm(self):
        """One fault; after enough of them the old producer ends."""
        if sum(self.counts.values()) >= FAULTS:
            if "old" in self._commands:
                self.stop_producer("old")
            return
        kinds = {self.kill_drain: 4, self.kill_process: 3, self.kill_supervisor: 1, self.kill_worker: 1}
        kinds[self.kill_server] = 2
        (act,) = self._dice.choices(list(kinds), list(kinds.values()))
        began = time.monotonic()
        pids = act()
        if pids is not None:
            self.faults.append(Fault(began, time.monotonic(), frozenset(pids)))
            self.counts[act.__name__] += 1

    def kill_drain(self):
        if self.drain is not None and self.drain.poll() is None:
            self.drain.send_signal(signal.SIGKILL)
            self.drain.wait(30)
            self.counts["kill_drain"] += 1

    def kill_process(self):
        processes = [pid for worker in self.workers.values() for pid in leaves_of(worker)]
        return kill(self._dice.sample(processes, min(1, len(processes))))

    def kill_supervisor(self):
        """Of a shard: its processes die with it, and the parent replaces it."""
        supervisors = self.workers["new"].children
        return kill(self._dice.sample(supervisors, min(1, len(supervisors))))

    def kill_worker(self):
        kind = self._dice.choice(list(self.workers))
        pids = kill(family_of(self.workers[kind]))
        self.workers[kind].wait()
        wait_until(lambda: not any(map(is_alive, pids)))
        self.work(kind, shards=kind == "new")
        return pids

    def kill_server(self):
        server = self._dice.choice(self._servers)
        server.kill()
        server.start()
        return ()

    def drained(self):
        """Whether the drain has found nothing more to carry. Starts it again if it has ended otherwise."""
        code = None if self.drain is None else self.drain.poll()
        if code == 0 and self.is_last:
            return True
        if self.drain is None or code is not None:
            self.is_last = "old" not in self._commands  # who enqueues into the old server
            self.drain = self.command("rtq_shards", "drain", "0")
        return False


def children_of(pid):
    """The processes that live. Unlike those of WorkerProcess of any process."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def family_of(worker):
    """A worker, its supervisors of shards, and their processes."""
    found = [worker.pid]
    for pid in found:
        found += children_of(pid)
    return found


def leaves_of(worker):
    """The processes that run jobs."""
    return [pid for pid in family_of(worker)[1:] if not children_of(pid)]


def kill(pids):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids or None


@pytest.fixture
def servers():
    """The old server, which is to be shard 0, and three new ones. They keep what they have answered."""
    made = [PrivateRedis(appendonly=True, arguments=["--appendfsync", "always"]) for _ in range(SHARDS)]
    try:
        yield [server.start() for server in made]
    finally:
        for server in made:
            server.stop()


@pytest.fixture
def clients(servers):
    clients = [Redis.from_url(server.url, protocol=2) for server in servers]
    yield clients
    for client in clients:
        client.close()


@pytest.fixture
def dice():
    seed = int(os.environ.get("RTQ_TORTURE_SEED", "0")) or random.SystemRandom().randrange(10**6)
    print(f"RTQ_TORTURE_SEED={seed}")  # noqa: T201 - to be found in the report of a failure
    return random.Random(seed)


@pytest.fixture
def fleet(servers, tmp_path, dice):
    fleet = Fleet(servers, tmp_path, dice)
    yield fleet
    fleet.end()


def seed_jobs(server):
    """Jobs in all states in the one Redis of a project without shards: handles by state."""
    with override_settings(RTQ={"REDIS": server.url, **OPTIONS}):
        finished = tasks.work.using(client="shop-1").delay_many([((f"finished-{n}",), {}) for n in range(FINISHED)])
        dead = tasks.bury.using(client="shop-2").delay_many([((f"dead-{n}",), {}) for n in range(DEAD)])
        drain(raise_errors=False)
        handles = {"succeeded": finished, "dead": dead, "scheduled": [], "queued": []}
        for number in range(CLIENTS):
            of_client = tasks.work.using(client=f"shop-{number}")
            names = [f"waiting-{n}" for n in range(number, WAITING, CLIENTS)]
            handles["queued"] += of_client.delay_many([((name, WORK_SECONDS), {}) for name in names])
            later = [f"later-{n}" for n in range(number, DELAYED, CLIENTS)]
            handles["scheduled"] += of_client.using(run_after=86_400).delay_many([((name,), {}) for name in later])
        close_brokers()
    return handles


def unexplained(runs, ends, faults):
    """Runs too many: a run was over, or its process and its supervisor lived on. Servers keep what they have told."""
    last = {run.pid: run for run in sorted(itertools.chain.from_iterable(runs.values()))}
    return [
        (name, before, again)
        for name, starts in runs.items()
        for before, again in itertools.pairwise(starts)
        if not any(
            explains(fault, before, ends.get((name, before.pid, before.attempt), again.at), faults, last)
            for fault in faults
        )
    ]


def explains(fault, run, end, faults, last):
    """Whether a run may not have been settled because of this fault. It may have begun after it: who is killed dies a
    moment later, and the processes of a supervisor after that."""
    if run.parent in fault.pids:  # nobody was left who knew that it was over
        return fault.began <= settled_by(end, faults)
    # A process that dies leaves a note of what was over, but perhaps of its last run.
    return run.pid in fault.pids and run == last[run.pid]


def settled_by(end, faults):
    """When the outcome of a run had arrived: later if a server was away, whichever that was. Who waits for one asks
    again, after as long as it has waited."""
    settled = end + SETTLED_SECONDS
    for fault in faults:
        if not fault.pids and fault.began <= settled and fault.ended >= end:
            settled = max(settled, 2 * fault.ended - fault.began + SETTLED_SECONDS)
    return settled


RUN = Run(at=10.0, pid=2, parent=1, attempt=1)
LATER = Run(at=10.5, pid=2, parent=1, attempt=1)


@pytest.mark.parametrize(
    ("faults", "is_explained"),
    [
        ([Fault(9.9, 9.9, {1})], True),  # its process has lived on for a moment
        ([Fault(11.0, 11.0, {1})], True),
        ([Fault(11.2, 11.2, {1})], False),
        ([Fault(10.8, 11.8, ()), Fault(13.7, 13.7, {1})], True),  # a server was away, and then it was waited for
        ([Fault(10.8, 11.8, ()), Fault(13.0, 13.1, ()), Fault(14.1, 14.1, {1})], True),
        ([Fault(10.8, 11.8, ()), Fault(13.9, 13.9, {1})], False),
        ([Fault(10.0, 12.0, ())], False),  # a server keeps what it has answered
        ([Fault(10.05, 10.05, {3})], False),
        ([], False),
    ],
)
def test_which_runs_again_are_explained(faults, is_explained):
    runs = {"job": [RUN, Run(at=20.0, pid=5, parent=4, attempt=2)], "other": [LATER]}
    ends = {("job", RUN.pid, RUN.attempt): 10.1}

    assert (unexplained(runs, ends, faults) == []) is is_explained


def test_only_the_last_run_of_a_killed_process_may_be_repeated():
    again = Run(at=20.0, pid=5, parent=4, attempt=2)
    killed = [Fault(10.6, 10.6, {2})]

    assert unexplained({"job": [RUN], "other": [LATER, again]}, {}, killed) == []
    assert unexplained({"job": [RUN, again], "other": [LATER]}, {}, killed) == [("job", RUN, again)]


def test_from_one_redis_to_four_shards_and_the_old_one_drained(fleet, servers, clients, journal, dice, tmp_path):
    began = time.monotonic()
    handles = seed_jobs(servers[0])
    journal.path.unlink()
    fleet.work("old", shards=False)
    fleet.produce("old", shards=False)
    # 1. the shards are added
    assert fleet.command("rtq_shards", "apply").wait(60) == 0
    fleet.work("new", shards=True)
    fleet.produce("new", shards=True)
    wait_until(lambda: all(client.exists("{rtq:default}:workers") for client in clients))
    # 2. the old server gets no new jobs but those of the old producers, and is drained
    fleet.stop_producer("new")
    fleet.is_closed = True
    fleet.produce("newest", shards=True)
    drain_began, next_fault = time.monotonic(), 0.0
    while not fleet.drained():
        pause = min(next_fault, time.monotonic() + 0.05)
        wait_until(lambda pause=pause: time.monotonic() >= pause)
        if time.monotonic() >= next_fault:
            fleet.harm()
            next_fault = time.monotonic() + PERIOD_SECONDS
        assert time.monotonic() - drain_began < MOST_SECONDS
    drain_seconds = time.monotonic() - drain_began
    carried = clients[0].hlen("{rtq:default}:carried") - 1  # it has the name of the call, too
    # 3. all is done
    fleet.stop_producer("newest")
    later = DELAYED + DEAD
    wait_until(lambda: sum(map(waiting, clients)) <= later, MOST_SECONDS)
    fleet.end()

    check(fleet, handles, servers, clients, journal, tmp_path)
    print(  # noqa: T201
        f"{carried} carried in {drain_seconds:.0f} s, {time.monotonic() - began:.0f} s in all; {dict(fleet.counts)}"
    )


def check(fleet, handles, servers, clients, journal, folder):
    runs, ended = runs_by_name(journal.entries("start")), runs_by_name(journal.entries("end"))
    ends = {(name, run.pid, run.attempt): run.at for name, found in ended.items() for run in found}
    accepted = set(whole_lines(folder / "accepted"))
    expected = accepted | {f"waiting-{n}" for n in range(WAITING)}
    again = sum(len(found) - 1 for found in runs.values())
    print(f"{len(accepted)} accepted, {sum(map(len, runs.values()))} runs, {again} again")  # noqa: T201

    assert expected - ended.keys() == set()  # nothing is lost
    assert not {name for name in runs if name.startswith(("later", "finished", "dead"))}
    assert unexplained(runs, ends, fleet.faults) == []  # and nothing ran twice without a reason
    for client in clients:
        assert_conserved(client)
    assert not records(clients[0])
    assert not clients[0].hlen("{rtq:default}:results")
    states = defaultdict(set)
    places = {number: server.url for number, server in enumerate(servers)}
    places[0] = {"redis": places[0], "closed": True}
    with override_settings(RTQ={"SHARDS": places, **OPTIONS}):
        for state, of_state in handles.items():
            for handle in of_state if state != "queued" else of_state[:: max(1, WAITING // 2000)]:
                states[state].add(handle.state)
        for handle in handles["succeeded"]:
            assert handle.get(1) is None
        for handle in handles["dead"]:
            with pytest.raises(JobFailed):
                handle.get(1)
        close_brokers()
    assert states == {"succeeded": {"succeeded"}, "dead": {"dead"}, "scheduled": {"scheduled"}, "queued": {"succeeded"}}
