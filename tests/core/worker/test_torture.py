"""Everything at once, at random: nothing is lost, and every extra run is explained by a fault.

RTQ_TORTURE_SECONDS says how long, RTQ_TORTURE_SEED which faults.
"""

import itertools
import os
import random
import time
from collections import Counter

import pytest

from tests.core.worker.conservation import assert_nothing_left, dead, records, signed_on
from tests.core.worker.torture_faults import (
    FaultInjector,
    is_hit_by,
    long_over,
    runs_by_name,
    terminations,
    unexplained,
)
from tests.core.worker.torture_workload import (
    Workload,
    most_sound_runs,
    not_followed,
    outcomes,
    ran_after_cancel,
    twice_alive,
)
from tests.support.waiting import PATIENCE, wait_until

SECONDS = float(os.environ.get("RTQ_TORTURE_SECONDS", "8"))
LEASE_SECONDS = 1.0
OPTIONS = [("--processes", 2), ("--processes", 2, "--concurrency", 3)]
MOST_RESULTS = 10_000_000
RTQ_OPTIONS = {"MAX_RESULTS": MOST_RESULTS}  # this process cancels jobs, and would forget older outcomes
STEP_MS = 200
LIMITS = {"QUEUES": {"default": {"max_running": 5, "client": {"max_running": 2}}}}
TICK = {"task": "tests.app.torture_tasks.tick", "every": STEP_MS / 1000, "missed": "all"}


@pytest.fixture
def seed():
    seed = int(os.environ.get("RTQ_TORTURE_SEED", "0")) or random.SystemRandom().randrange(10**6)
    print(f"RTQ_TORTURE_SEED={seed}")  # noqa: T201 - to be found in the report of a failure
    return seed


@pytest.fixture(params=[{}, LIMITS], ids=["without limits", "with limits"])
def limits(request):
    return request.param


@pytest.fixture
def injector(seed, rtq_worker, redis, redis_server, readers, limits):
    def start(number):
        options = {"LEASE_SECONDS": LEASE_SECONDS, "MAX_RESULTS": MOST_RESULTS, "SCHEDULES": {"tick": TICK}, **limits}
        return rtq_worker("--queues", "default,ticks", *OPTIONS[number], is_ready=False, **options)

    return FaultInjector(seed, redis, redis_server, readers, start, lease_seconds=LEASE_SECONDS)


def torture(injector, redis, workload, dice):
    """Enqueue, cancel and do harm until the time is over, and wait until all is done."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        workload.enqueue()
        workload.cancel()
        workload.let_pass(time.monotonic() + dice.uniform(0.05, 0.4), lambda: records(redis), injector.release)
        injector.act()
    injector.release(all_of_them=True)
    wait_until(lambda: not waiting(redis), 3 * PATIENCE)
    wait_until(lambda: all(worker.children for worker in injector.workers))  # the last may be starting still
    wait_until(lambda: signed_on(redis) == set(injector.children))  # and nobody of those that died
    assert [worker.stop() for worker in injector.workers] == [0, 0]


def waiting(redis):
    """What is not over; there is always a tick on its way."""
    held = {job_id.decode() for job_id in redis.hkeys("{rtq:default}:jobs")}
    return held - dead(redis)


def counted(redis, field):
    return sum(int(redis.hget(key, field) or 0) for key in redis.scan_iter("{rtq:default}:stats:*"))


def gaps_of_ticks(redis):
    slots = sorted(
        int(job_id[:12], 16) for job_id in redis.sunion("{rtq:ticks}:finished", "{rtq:ticks}:finished_before")
    )
    return {after - before for before, after in itertools.pairwise(slots)}


def check_limits(workload, runs, ends, faults, readers):
    """Nobody ran more than it may, at no moment, and all places are free again."""

    def is_hit(run, end):
        own = [fault for fault in faults if fault.pid in (run.pid, run.parent)]
        return any(fault.began <= end and fault.ended >= run.at for fault in own)

    clients = set(workload.client_of.values())
    busiest = {
        client: most_sound_runs(runs, ends, lambda name: workload.client_of.get(name) == client, is_hit)  # noqa: B023
        for client in clients
    }
    print(f"at once, by client: {busiest}")  # noqa: T201
    assert max(busiest.values()) <= 2
    assert most_sound_runs(runs, ends, lambda name: True, is_hit) <= 5
    found = readers.clients.limits("default")
    assert (found.running, [client for client in found.clients.values() if client.is_blocked]) == (0, [])
    broker = readers.broker
    broker.limits.change("default", {"settings:queue": "", "settings:clients": ""})


def tidy_up(redis, readers):
    while dead_ids := dead(redis):
        readers.actions.done("discard", "default", list(dead_ids)[:100])
    readers.sweeps.purge_some("ticks", None)
    redis.delete(*("{rtq:ticks}:" + name for name in ("schedules", "bands", "ring:0")))  # claim tidies up the others


def test_nothing_is_lost_and_every_run_too_many_has_a_fault_to_explain_it(
    seed, injector, redis, readers, journal, limits
):
    dice = random.Random(seed)
    workload = Workload(dice)

    torture(injector, redis, workload, dice)

    entries = journal.entries("start")
    faults = [*injector.faults, *terminations(injector.started, entries + journal.entries("end"))]
    runs, ended, dead_ids = runs_by_name(entries), runs_by_name(journal.entries("end")), dead(redis)
    ends = {(name, run.pid, run.attempt): run.at for name, found in ended.items() for run in found}
    states = outcomes(redis)
    metrics = Counter(states.values())
    print(  # noqa: T201
        f"{len(workload.names)} jobs, {len(workload.calls)} unique calls, {len(entries)} runs, {dict(metrics)}, "
        f"{len(dead_ids)} dead, {dict(injector.counts)}"
    )
    names = {name for name in workload.names if name.split("-")[0] not in ("failing", "once")}
    assert names - ended.keys() <= {name for _, name, _ in workload.cancelled}  # nothing is lost
    assert workload.ids <= states.keys() | dead_ids
    assert counted(redis, "succeeded") == metrics["succeeded"]  # and nothing was acknowledged twice
    assert counted(redis, "cancelled") == metrics["cancelled"]
    assert {name: len(found) for name, found in runs.items() if name.startswith("once") and len(found) > 1} == {}
    assert ran_after_cancel(workload.cancelled, runs, lambda run: is_hit_by(run, faults)) == []
    assert twice_alive(workload.calls, runs, ends, lambda run: is_hit_by(run, faults)) == []
    assert not_followed(workload.calls, runs, workload.cancelled) == []
    left = unexplained(runs, faults, long_over(ended))
    assert [found for found in left if not found[0].startswith("failing")] == []
    too_many = Counter(name for name, _, _ in left)
    assert not too_many or max(too_many.values()) <= 2  # their failures
    assert gaps_of_ticks(redis) <= {STEP_MS}
    assert {readers.find(job_id, "default").task for job_id in dead_ids} <= {"tests.app.torture_tasks.once"}
    if limits:
        check_limits(workload, runs, ends, faults, readers)
    tidy_up(redis, readers)
    assert_nothing_left(redis)
