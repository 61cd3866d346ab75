"""A Cluster under load whose slot moves again and again, and whose masters are killed: no job is lost.

With RTQ_TEST_NIGHTLY=1 the slot moves for ten minutes, and twenty masters are killed. RTQ_CLUSTER_SECONDS and
RTQ_CLUSTER_KILLS say other numbers. The server is the one that all tests use.
"""

import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from statistics import median

import pytest
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.redis.connections import COMMAND_SECONDS
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.exceptions import BrokerUnavailable, NotReplicated
from tests.app import tasks
from tests.support.jobs import QUEUE
from tests.support.nightly import IS_NIGHTLY
from tests.support.redis_cluster import (
    REDIS_MOVE,
    VALKEYS_MOVE,
    PrivateCluster,
    ask,
    knows,
    node_id,
    nodes,
    offset_of,
)
from tests.support.redis_sentinel import PrivateReplication
from tests.support.waiting import PATIENCE, wait_until

SECONDS = float(os.environ.get("RTQ_CLUSTER_SECONDS", "600" if IS_NIGHTLY else "2"))
KILLS = int(os.environ.get("RTQ_CLUSTER_KILLS", "20" if IS_NIGHTLY else "1"))
# Where masters are killed, and how many replicas delay() waits for
PLACES = [("cluster", 0), ("cluster", 1), *([("sentinel", 0), ("sentinel", 1)] if IS_NIGHTLY else [])]
BEHIND_SECONDS = 0.1
DELAY_SECONDS = 0.5  # of jobs that may get lost with their master: none runs before it dies
PAUSE_SECONDS = 0.003  # between two jobs, and between two keys that move


class Load(threading.Thread):
    """Enqueues jobs one by one until it is told to stop."""

    def __init__(self, task):
        super().__init__()
        self._task = task
        self._is_over = threading.Event()
        self.accepted = []
        self.stored_at = []  # when the jobs were stored that were accepted, or not replicated
        self.refused = []
        self.unreplicated = []

    def run(self):
        number = 0
        while not self._is_over.is_set():
            number += 1
            try:
                self._task.delay(f"job-{number}")
                self.accepted.append(f"job-{number}")
            except BrokerUnavailable as error:
                self.refused.append(error)
                self._is_over.wait(PAUSE_SECONDS)
                continue
            except NotReplicated as error:
                self.unreplicated.append(error)
            self.stored_at.append(time.monotonic())
            self._is_over.wait(PAUSE_SECONDS)

    def stop(self):
        """Returns the names of the jobs that were accepted."""
        self._is_over.set()
        self.join()
        return self.accepted


@pytest.fixture
def begin(request, rtq_worker, journal):
    """Start a Cluster, or a master with a Sentinel, workers on it and a load. Returns the load."""
    stack = []

    def begin(task, cluster, *, lease_seconds=10, **options):
        request.addfinalizer(cluster.stop)
        cluster.start()
        settings = override_settings(RTQ={"REDIS": cluster.source, **options})
        settings.enable()
        load = Load(task)
        stack.extend((load, settings))
        rtq_worker("--processes", 2, is_ready=False, LEASE_SECONDS=lease_seconds, REDIS=cluster.source, **options)
        load.start()
        wait_until(journal.starts)
        return load

    yield begin
    if stack:
        load, settings = stack
        load.stop()
        get_broker().close()
        settings.disable()


def wait_until_all_is_done():
    broker = for_workers(get_broker())
    wait_until(lambda: not broker.redis.execute_one(("HLEN", broker.keys.of(QUEUE).jobs)), 3 * PATIENCE)


@pytest.mark.parametrize("how", ["key by key", "as a whole"])
def test_a_slot_that_moves_again_and_again_loses_no_job_and_refuses_nobody(begin, journal, redis_server, how):
    if how == "as a whole" and not knows(redis_server, REDIS_MOVE, VALKEYS_MOVE):
        pytest.skip("slots move as a whole since Redis 8.4 and Valkey 9")
    cluster, pause = PrivateCluster(patient=True), threading.Event()
    load = begin(tasks.note, cluster)
    until, moves, longest = time.monotonic() + SECONDS, 0, 0.0
    while time.monotonic() < until or moves < 3:
        accepted, moves, began = len(load.accepted), moves + 1, time.monotonic()
        if how == "key by key":
            cluster.move(between=lambda: pause.wait(PAUSE_SECONDS))
        else:
            cluster.move_as_a_whole()
        longest = max(longest, time.monotonic() - began)
        wait_until(lambda accepted=accepted: len(load.accepted) > accepted + 50)
    names = load.stop()
    wait_until_all_is_done()

    counts = f"{moves} moves, at most {longest:.1f} s, {len(names)} jobs accepted, {len(load.refused)} refused"
    print(counts)  # noqa: T201
    assert load.refused == [] or longest > COMMAND_SECONDS
    assert Counter(journal.names()) == Counter(names)


@pytest.mark.skipif(not IS_NIGHTLY, reason="moves thousands of slots: only with RTQ_TEST_NIGHTLY=1")
def test_a_master_that_is_added_and_one_that_is_removed_under_load(begin, journal):
    cluster = PrivateCluster(patient=True)
    load = begin(tasks.note, cluster)
    owner, other = cluster.owner(), cluster.servers[0].port
    new = cluster.add_server()
    redis_cli("add-node", f"127.0.0.1:{new.port}", f"127.0.0.1:{other}")
    wait_until(lambda: all(len(nodes(server)) == len(cluster.servers) for server in cluster.servers))
    weights = ["--cluster-use-empty-masters", "--cluster-weight", f"{node_id(owner)}=0"]
    redis_cli("rebalance", f"127.0.0.1:{new.port}", *weights)
    assert cluster.owner() is not owner
    redis_cli("del-node", f"127.0.0.1:{new.port}", node_id(owner))
    accepted = len(load.accepted)
    wait_until(lambda: len(load.accepted) > accepted + 50)
    names = load.stop()
    wait_until_all_is_done()

    print(f"{len(names)} jobs accepted, {len(load.refused)} refused")  # noqa: T201
    assert load.refused == []
    assert Counter(journal.names()) == Counter(names)


def redis_cli(*arguments):
    """Call redis-cli --cluster, until it does not wait for nodes to agree any more. Skips the test without it."""
    program = shutil.which("redis-cli") or shutil.which("valkey-cli") or pytest.skip("redis-cli is not installed")
    command = [program, "--cluster", *arguments]

    def is_done():
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    wait_until(is_done, 3 * PATIENCE)


@pytest.mark.parametrize(("place", "wait_replicas"), PLACES)
def test_masters_that_are_killed_while_their_replica_is_behind(begin, journal, place, wait_replicas):
    cluster = PrivateCluster(replicas=1) if place == "cluster" else PrivateReplication()
    load = begin(tasks.note.using(run_after=DELAY_SECONDS), cluster, WAIT_REPLICAS=wait_replicas)
    waits, at_risk = [], set()
    for _ in range(KILLS):
        wait_until(lambda: all(map(cluster.is_ready, cluster.servers)), 3 * PATIENCE)
        waits.append(kill_master(cluster, load, journal, at_risk))
    names = load.stop()
    wait_until_all_is_done()

    lost = set(names) - set(journal.names("end"))
    counts = f"{len(names)} jobs accepted, {len(lost)} lost of {len(at_risk)} at risk"
    seconds = in_words(waits, "promotion")
    print(f"{KILLS} kills, {counts}, {len(load.unreplicated)} not replicated; {seconds}")  # noqa: T201
    assert lost <= (set() if wait_replicas else at_risk)


@pytest.mark.skipif(not IS_NIGHTLY, reason="masters take seconds to come back: only with RTQ_TEST_NIGHTLY=1")
def test_masters_without_a_replica_that_are_killed_and_come_back_lose_no_job(begin, journal):
    cluster = PrivateCluster(appendonly=True)
    load = begin(tasks.note.using(run_after=DELAY_SECONDS), cluster)
    waits = []
    for _ in range(KILLS):
        wait_until(lambda: all(map(cluster.is_ready, cluster.servers)), 3 * PATIENCE)
        master, accepted = cluster.owner(), len(load.accepted)
        wait_until(lambda accepted=accepted: len(load.accepted) > accepted + 50)
        master.kill()
        killed = time.monotonic()
        master.start()
        waits.append([time.monotonic() - killed, *first_after(killed, load, journal)])
    names = load.stop()
    wait_until_all_is_done()

    lost = set(names) - set(journal.names("end"))
    print(f"{KILLS} kills, {len(names)} jobs accepted, {len(lost)} lost; {in_words(waits, 'restart')}")  # noqa: T201
    assert lost == set()


def in_words(waits, *first):
    """The medians and the longest of the seconds until that, until a job was stored, and until one was started."""
    columns = zip((*first, "stored", "started"), zip(*waits, strict=True), strict=True)
    return ", ".join(f"{what} after {median(times):.2f} s, at most {max(times):.2f}" for what, times in columns)


def first_after(moment, load, journal):
    """The seconds until the first job was stored, and until the first one was started."""
    wait_until(lambda: after(moment, load.stored_at))
    wait_until(lambda: after(moment, (entry.at for entry in journal.entries("start"))), 3 * PATIENCE)
    (stored, *_), (started, *_) = after(moment, load.stored_at), after(moment, (e.at for e in journal.entries("start")))
    return stored - moment, started - moment


def kill_master(cluster, load, journal, at_risk):
    """Kill the master of our slot a moment after its replica has lost it, and start it again.

    Adds the jobs that were accepted in that moment. Returns the seconds until the replica was promoted, and from then
    on until the first job was stored, and until the first one was started.
    """
    master, safe = cluster.owner(), set(load.accepted)
    replica = replica_in_step(cluster, master)
    replica.pause()
    ask(master, "CLIENT KILL", "TYPE", "replica")
    threading.Event().wait(BEHIND_SECONDS)
    began = time.monotonic()
    master.kill()
    killed = time.monotonic()
    replica.resume()
    wait_until(lambda: b"role:master" in ask(replica, "INFO", "replication"))
    promoted = time.monotonic()
    at_risk |= set(load.accepted) - safe
    wait_until(lambda: after(killed, load.stored_at))
    (stored, *_) = after(killed, load.stored_at)
    wait_until(lambda: after(promoted, (entry.at for entry in journal.entries("start"))))
    (started, *_) = after(promoted, (entry.at for entry in journal.entries("start")))
    master.start()
    return promoted - began, max(0.0, stored - promoted), started - promoted


def replica_in_step(cluster, master):
    """The replica of a master, when it has all that its master has now."""
    place = f"master_port:{master.port}\r".encode()
    replica = next(server for server in cluster.servers if place in ask(server, "INFO", "replication"))
    offset = offset_of(master)
    wait_until(lambda: offset_of(replica) >= offset)
    return replica


def after(moment, times):
    """Those of the times that come later."""
    return [time for time in tuple(times) if time > moment]
