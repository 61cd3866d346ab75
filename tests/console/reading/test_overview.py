"""All that an overview shows, in two round trips, which viewers share."""

import pytest

from django_rtq.console.reading import overview as shared_overview
from django_rtq.console.reading.details import UnknownTask
from django_rtq.console.reading.overview import OverviewReader
from django_rtq.console.server_info import read_server
from django_rtq.core.broker.settlement import Settlement
from django_rtq.exceptions import BrokerFull, BrokerUnavailable
from tests.console.lua.test_list_running import NOTE
from tests.core.broker.test_note_unknown_task import PARK_MS, TASK, note
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    dead_job,
    finished_job,
    queued_job,
    read_all,
    retrying_job,
    scheduled_job,
)
from tests.support.single_steps import promote
from tests.support.snapshots import snapshot


def test_queues_workers_and_server_are_told(redis, broker, readers):
    for seed in (finished_job, dead_job, retrying_job, scheduled_job, claimed_job, queued_job):
        seed(broker)
    broker.heartbeat([QUEUE], {WORKER: NOTE}, promote=True)
    before = snapshot(redis)

    front = readers.overview.read()

    (row,) = front.queues
    assert (row.details.queued, row.details.running, row.details.dead) == (1, 1, 1)
    assert (row.slots, row.utilisation, row.per_minute("succeeded"), row.per_minute("failed")) == (4, 0.0, 0.2, 0.4)
    assert sum(row.series.of("succeeded")[-2:]) == 1  # a minute may have begun since
    assert [(worker.name, worker.host, len(worker.running)) for worker in front.workers] == [(WORKER, "web1", 1)]
    told = redis.info("server")
    assert front.server.version == told.get("valkey_version", told["redis_version"])
    assert front.unscheduled == []
    assert 0 <= row.details.contact_seconds < 5
    assert snapshot(redis) == before


def test_a_queue_that_no_scheduler_looks_after_is_named(redis, broker, readers):
    broker.register_queues(["high", "low"])
    promote(broker, "high")

    assert readers.overview.read().unscheduled == ["low"]


@pytest.mark.parametrize("queues", [1, 20])
def test_it_takes_two_round_trips_however_much_there_is(redis, broker, readers, round_trips, queues):
    for number in range(queues):
        for _ in range(10):
            queued_job(broker, queue=f"queue-{number}")
    broker.heartbeat([QUEUE], {f"worker-{number}": NOTE for number in range(queues)}, promote=True)
    round_trips.clear()

    readers.overview.shared()
    assert len(round_trips) == 2
    readers.overview.history(1440, 20)
    assert len(round_trips) == 3


@pytest.mark.parametrize("state", ["scheduled", "retrying", "dead", "finished"])
@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_pages_go_on_where_the_last_one_ended_even_within_one_moment(redis, broker, readers, state, limit):
    key = getattr(broker.keys.of(QUEUE), "result_times" if state == "finished" else state)
    ids = [f"job-{number}" for number in range(5)]
    redis.zadd(key, dict.fromkeys(ids, 2_000_000_000_000))
    stored, text = ("results", "1 2000000000000 {}") if state == "finished" else ("jobs", "0 3 1 0 \n{}")
    redis.hset(getattr(broker.keys.of(QUEUE), stored), mapping=dict.fromkeys(ids, text))
    pages, found = read_all(lambda cursor: readers.search([(QUEUE, state)]).page(cursor, limit))

    assert all(len(page.jobs) <= limit for page in pages)
    assert sorted(found) == ids
    assert len(found) == 5


def test_who_has_failed_is_not_among_the_scheduled(redis, keys, readers):
    ids = [f"job-{number:04}" for number in range(1200)]
    redis.zadd(keys.scheduled, dict.fromkeys(ids, 2_000_000_000_000))
    redis.zadd(keys.retrying, dict.fromkeys(ids[:1100], 2_000_000_000_000))
    redis.hset(keys.jobs, mapping=dict.fromkeys(ids, "0 3 1 0 \n{}"))

    page = readers.search([(QUEUE, "scheduled")]).page()

    assert [job.id for job in page.jobs] == ids[1100:1150]


@pytest.mark.parametrize(
    ("info", "warnings"),
    [
        (b"aof_enabled:1\r\nmaxmemory_policy:noeviction\r\n", []),
        (b"aof_enabled:0\r\nmaxmemory_policy:allkeys-lru\r\n", ["evicts", "volatile"]),
        (b"used_memory:95\r\nmaxmemory:100\r\n", ["nearly_full"]),
        (b"used_memory:100\r\nmaxmemory:100\r\n", ["full"]),
        # a refused command has given its memory back
        (b"used_memory:98\r\nmaxmemory:100\r\n", ["full"]),
        (b"used_memory:91\r\nmaxmemory:100\r\nerrorstat_OOM:count=3\r\n", ["full"]),
        (b"used_memory:89\r\nmaxmemory:100\r\nerrorstat_OOM:count=3\r\n", []),
        (b"used_memory:101\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n", ["evicts", "nearly_full"]),
        (b"used_memory:95\r\nmaxmemory:0\r\n", []),
        (b"connected_clients:801\r\nmaxclients:1000\r\n", ["connections"]),
        (b"connected_clients:800\r\nmaxclients:1000\r\n", []),
        (
            b"role:slave\r\naof_last_write_status:err\r\nrdb_last_bgsave_status:err\r\n",
            ["log_failed", "snapshot_failed", "replica"],
        ),
    ],
)
def test_what_endangers_jobs_is_told(info, warnings):
    assert read_server(info, 1).warnings == warnings


def test_a_server_that_refuses_is_full_however_little_it_uses(redis, broker, readers):
    broker.register_queues(["default"])
    redis.config_resetstat()
    assert "full" not in readers.overview.read().server.warnings
    with redis.full_memory(), pytest.raises(BrokerFull):
        queued_job(broker)

    for _ in range(2):
        assert "full" in readers.overview.read().server.warnings


def test_a_server_that_does_not_tell_is_no_trouble():
    server = read_server(b"", 1)

    assert (server.is_known, server.version, server.used_memory, server.warnings) == (False, "", None, [])


def test_where_a_lost_worker_ran_is_known_for_as_long_as_it_is_listed(redis, broker, readers):
    broker.register_queues(["default"])
    broker.sign_on(["default"], "web1:4711:0a1b2c3d")
    broker.heartbeat(["default"], {"web1:4711:0a1b2c3d": {"host": "web1.lan", "pid": 4711}}, promote=False)
    redis.zadd(broker.keys.of("default").workers, {"web1:4711:0a1b2c3d": 1})
    assert [(each.host, each.pid, each.queues) for each in readers.workers()] == [("web1.lan", 4711, ["default"])]

    redis.delete(broker.keys.worker("web1:4711:0a1b2c3d"))

    assert [(each.host, each.pid, each.queues) for each in readers.workers()] == [("web1", 4711, ["default"])]


def test_of_a_worker_that_is_no_more_little_is_kept_for_a_minute(redis, broker):
    broker.register_queues(["default"])
    for name in ("left", "crashed"):
        broker.sign_on(["default"], name)
        broker.heartbeat(["default"], {name: {"host": "web1"}}, promote=False)

    broker.sign_off(["default"], "left")
    broker.reclaim_child("default", "crashed", [])

    assert sorted(redis.keys("rtq:worker*")) == [b"rtq:worker:crashed", b"rtq:worker:left"]
    assert all(0 < redis.ttl(f"rtq:worker:{name}") <= 60 for name in ("crashed", "left"))


@pytest.fixture
def shared(broker, readers):
    broker.register_queues([QUEUE])
    return readers.overview.shared


@pytest.mark.parametrize(
    ("seconds", "rest", "is_shared"),
    [(1000.0, 0, True), (0.0, 0, False), (0.0, 1e6, True)],
    ids=["within a second", "after that", "one that takes long is kept for longer"],
)
def test_it_is_read_once_for_all_who_look_within_a_second(broker, shared, monkeypatch, seconds, rest, is_shared):
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", seconds)
    monkeypatch.setattr(shared_overview, "REST", rest)
    first = shared()
    queued_job(broker)

    assert (shared() is first) is is_shared
    assert [row.details.queued for row in shared(fresh=True).queues] == [1]


def test_an_error_is_shared_too_and_then_forgotten(shared, monkeypatch):
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 1000.0)
    asked = []

    def fail(self):
        asked.append(1)
        raise BrokerUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(OverviewReader, "read", fail)
        for _ in range(2):
            with pytest.raises(BrokerUnavailable):
                shared()
    assert len(asked) == 1
    assert [row.details.name for row in shared(fresh=True).queues] == [QUEUE]


def serve(broker, *clients):
    """(client, runs, seconds) each."""
    flat = [value for name, runs, seconds in clients for value in (name, runs, round(seconds * 1e6))]
    broker.settle("w1", QUEUE, Settlement(metrics=[(0, 0, 0, *flat)]))


def busiest(readers):
    (row,) = readers.overview.read().queues
    return row.busiest and row.busiest[:2]


@pytest.mark.parametrize(
    ("waiting", "served", "told"),
    [
        ("xy", [("x", 50, 1.0), ("z", 2, 3.0)], ("z", 0.75)),
        (["", "y"], [("", 1, 1.0)], ("", 1.0)),
        *((alone, [("x", 50, 1.0)], None) for alone in ("", "x", "xx")),
    ],
)
def test_while_several_clients_wait_it_is_the_one_with_most_run_time(redis, broker, readers, waiting, served, told):
    broker.register_queues([QUEUE])
    for client in waiting:
        queued_job(broker, client=client)
    serve(broker, *served)
    before = snapshot(redis)

    assert busiest(readers) == told
    assert snapshot(redis) == before


def test_the_whole_hour_counts_and_no_more(redis, broker, readers):
    for client in "xy":
        queued_job(broker, client=client)
    keys, slice_ = broker.keys.of(QUEUE), redis.time()[0] // 600
    for back, times in ((0, {"x": 4, "y": 3}), (3, {"y": 3}), (6, {"z": 90})):
        redis.zadd(keys.client_time + str(slice_ - back).encode(), times)
        redis.hset(keys.client_runs + str(slice_ - back).encode(), "\n", sum(times.values()))

    assert busiest(readers) == ("y", 0.6)


def test_it_is_told_for_how_long_jobs_of_others_wait_that_might_start(redis, broker, readers, rtq):
    keys, now_ms = broker.keys.of(QUEUE), redis.time()[0] * 1000
    for client in ("busy", "paused", "other"):
        queued_job(broker, client=client)
    redis.zadd(keys.lanes, {"0:busy": now_ms - 900_000, "0:paused": now_ms - 800_000, "0:other": now_ms - 70_000})
    serve(broker, ("busy", 50, 9.0))
    rtq.clients["paused"].pause(QUEUE)

    (row,) = readers.overview.read().queues
    assert row.busiest.others_wait_seconds == pytest.approx(70, abs=5)

    rtq.clients["other"].pause(QUEUE)
    assert busiest(readers) is None


@pytest.mark.parametrize(
    ("ago_ms", "slices_ago", "jobs"), [(0, 0, 7), (0, 1, 3), (2 * PARK_MS, 2, 3), (2 * PARK_MS + 1, 2, None)]
)
def test_it_is_read_for_a_minute(ago_ms, slices_ago, jobs):
    now = 100 * PARK_MS + 5
    line = f"{now - 90_000} {now - ago_ms} {100 - slices_ago} 3 7 web1:7:x web2:7:x"

    found = UnknownTask.read_all({TASK.encode(): line.encode()}, now)

    assert [(each.task, each.jobs, each.workers, round(each.since.timestamp() * 1000)) for each in found] == (
        [(TASK, jobs, ["web1:7:x", "web2:7:x"], now - 90_000)] if jobs else []
    )


def test_the_overview_names_them_and_no_failures(broker, readers):
    claimed_job(broker, "a")
    note(broker)
    (row,) = readers.overview.read().queues
    assert (row.newest_dead, row.newest_retrying) == (None, None)
    assert [(each.task, each.jobs, each.workers) for each in row.unknown_tasks] == [(TASK, 1, ["web1:7:x"])]
