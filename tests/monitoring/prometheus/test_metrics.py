"""What the metrics say about queues, tasks and workers."""

import pytest

from django_rtq.console.histogram import bucket_of
from django_rtq.core.broker.redis.commands import command_hooks
from django_rtq.core.broker.settlement import Settlement
from django_rtq.monitoring.prometheus import STATES, RTQCollector, metrics_text
from tests.app import tasks
from tests.monitoring.prometheus.samples import Samples
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    dead_job,
    let_lapse,
    new_job,
    queued_job,
    retrying_job,
    scheduled_job,
)
from tests.support.waiting import PATIENCE, minute_with_time_left, wait_until
from tests.support.workflows import blocked_flow, seed_blocked, shown_flows


@pytest.fixture
def scrape(broker):
    """Scrape the metrics. Counters began before the test."""
    broker.register_queues([QUEUE])
    metrics_text()
    return lambda: Samples(metrics_text()[1].decode())


def tell(broker, *counters):
    broker.settle(WORKER, QUEUE, Settlement(metrics=[(0, 0, len(counters) // 2, *counters)]))


def test_jobs_are_counted_by_state(broker, scrape):
    dead_job(broker)
    retrying_job(broker)
    claimed_job(broker)
    scheduled_job(broker)
    queued_job(broker, client="a")
    queued_job(broker, client="b")

    found = scrape()

    counts = {state: found.value("rtq_jobs", queue=QUEUE, state=state) for state in STATES}
    assert counts == {"queued": 2, "scheduled": 1, "retrying": 1, "running": 1, "dead": 1}
    assert found.value("rtq_queue_waiting_clients", queue=QUEUE) == 2
    assert found.value("rtq_jobs_enqueued_total", queue=QUEUE) == 6
    assert found.value("rtq_runs_failed_total", queue=QUEUE) == 2
    assert found.value("rtq_dead_letters_total", queue=QUEUE) == 1
    assert found.value("rtq_jobs_purged_total", queue=QUEUE) == 0


def test_the_oldest_job_has_an_age(redis, broker, keys, scrape):
    queued_job(broker)
    redis.zincrby(keys.lanes, -60_000, redis.zrange(keys.lanes, 0, 0)[0])

    assert 60 <= scrape().value("rtq_queue_oldest_job_age_seconds", queue=QUEUE) < 600


def test_a_pause_is_visible(broker, rtq, scrape):
    queued_job(broker)
    assert scrape().value("rtq_queue_paused", queue=QUEUE) == 0
    rtq.queues[QUEUE].pause()
    assert scrape().value("rtq_queue_paused", queue=QUEUE) == 1


def test_counters_go_on_when_the_minute_and_the_hour_are_over(redis, broker, scrape):
    minute, keys = minute_with_time_left(redis, 15), broker.keys.of(QUEUE)
    queued_job(broker)
    tell(broker, "done ship", 3, "retried ship", 1, "crashed ship", 2)
    scrape()
    # As if what was counted had been counted a minute and an hour ago.
    redis.rename(redis.keys("*stats:*")[0], keys.stats + b"%d" % (minute - 1))
    redis.rename(redis.keys("*tasks:*")[0], keys.tasks + str(minute // 60 - 1).encode())
    redis.hset(keys.totals, mapping={"minute": minute - 1, "hour": minute // 60 - 1})
    queued_job(broker)
    tell(broker, "done ship", 1)

    for _ in range(2):
        found = scrape()
        assert found.value("rtq_jobs_enqueued_total", queue=QUEUE) == 2
        assert found.value("rtq_task_runs_succeeded_total", queue=QUEUE, task="ship") == 4
        assert found.value("rtq_task_retries_total", queue=QUEUE, task="ship") == 1
        assert found.value("rtq_task_runs_crashed_total", queue=QUEUE, task="ship") == 2


def test_a_queue_whose_clock_goes_on_after_it_was_put_back_hides_no_runs_of_others(redis, broker, scrape):
    tell(broker, "done ship", 3)
    broker.register_queues(["other"])
    redis.hset(broker.keys.of("other").clock, "high", redis.time()[0] * 1000 + 3_590_000)

    assert scrape().value("rtq_task_runs_succeeded_total", queue=QUEUE, task="ship") == 3


def test_a_histogram_has_the_runs_below_each_bound(broker, scrape):
    queued_job(broker)
    runs = {0.0: 1, 0.0004: 2, 0.3: 4, 0.5: 8, 3.0: 16, 1e6: 32}
    tell(broker, "run_us ship", 2_500_000, *(v for s, n in runs.items() for v in (f"r{bucket_of(s)} ship", n)))

    found = scrape()

    def below(bound):
        return found.value("rtq_task_run_seconds_bucket", task="ship", le=bound)

    assert (below("0.0009765625"), below("0.25"), below("0.5"), below("1.0"), below("4.0")) == (3, 3, 7, 15, 31)
    assert (below("4096.0"), below("+Inf")) == (31, 63)
    assert found.value("rtq_task_run_seconds_count", task="ship") == 63
    assert found.value("rtq_task_run_seconds_sum", task="ship") == 2.5


def test_waits_are_in_seconds(broker, scrape):
    queued_job(broker)
    tell(broker, f"w{bucket_of(100)} ship", 2, f"w{bucket_of(300)} ship", 1, "wait_ms ship", 500)

    found = scrape()

    assert found.value("rtq_queue_wait_seconds_bucket", queue=QUEUE, le="0.064") == 0
    assert found.value("rtq_queue_wait_seconds_bucket", queue=QUEUE, le="0.128") == 2
    assert found.value("rtq_queue_wait_seconds_bucket", queue=QUEUE, le="0.512") == 3
    assert found.value("rtq_queue_wait_seconds_sum", queue=QUEUE) == 0.5


def test_workers_are_counted_by_host(redis, broker, scrape):
    broker.enqueue(QUEUE, [new_job(), new_job()])
    broker.sign_on([QUEUE], "w1")
    broker.sign_on([QUEUE], "w2")
    broker.claim("w1", [QUEUE], 2)  # a batch: it runs one at a time
    let_lapse(broker, "w2")
    for worker, slots in (("w1", 1), ("w2", 4)):
        info = {"host": "web1", "queues": "default,bulk", "slots": slots, "memory": 1000, "quiet": "1"}
        redis.hset(f"rtq:worker:{worker}", mapping=info)
        redis.zadd("rtq:workers", {worker: 1})

    found = scrape()

    states = {state: found.value("rtq_workers", host="web1", state=state) for state in ("active", "quiet", "lost")}
    assert states == {"active": 0, "quiet": 1, "lost": 1}
    assert found.value("rtq_worker_slots", host="web1") == 1
    assert found.value("rtq_worker_slots_busy", host="web1") == 1
    assert found.value("rtq_worker_memory_bytes", host="web1") == 1000
    assert found.value("rtq_queue_slots", queue=QUEUE) == 0  # of those that claim jobs
    redis.hset("rtq:worker:w1", "quiet", "0")
    assert scrape().value("rtq_queue_slots", queue=QUEUE) == 1


def test_it_takes_four_round_trips_however_many_queues_there_are(broker, scrape, round_trips):
    for number in range(20):
        broker.enqueue(f"queue-{number}", [new_job()])
    scrape()
    round_trips.clear()

    assert len(scrape().of("rtq_queue_paused")) == 21
    assert len(round_trips) == 4


def test_without_a_queue_there_are_no_samples_but_those_of_the_server(redis, broker):
    found = Samples(metrics_text()[1].decode())
    assert found.names == {"rtq_incidents", "rtq_workflows", "rtq_workflows_blocked_age_seconds"}
    labels = {"kind": "redis_volatile", "severity": "warning", "queue": "", "task": "", "host": ""}
    assert found.value("rtq_incidents", **labels) == 1


def test_incidents_are_counted_by_kind_and_subject(broker, rtq, scrape):
    broker.register_queues(["bulk", QUEUE])
    broker.sign_on([QUEUE], "w1")
    for queue in ("bulk", QUEUE):
        rtq.queues[queue].pause()

    found = scrape()

    counts = {
        (dict(labels)["kind"], dict(labels)["queue"]): count for labels, count in found.of("rtq_incidents").items()
    }
    assert {pair: count for pair, count in counts.items() if pair[0] in ("queue_paused", "no_worker")} == {
        ("queue_paused", "bulk"): 1,
        ("queue_paused", QUEUE): 1,
    }


def test_workflows_are_counted_by_state(redis, broker, scrape):
    assert scrape().value("rtq_workflows_blocked_age_seconds") == 0
    shown_flows(broker)
    blocked_flow(broker)
    seed_blocked(redis, broker, seconds=7200)

    found = scrape()

    counts = {dict(labels)["state"]: count for labels, count in found.of("rtq_workflows").items()}
    assert counts == {"running": 1, "blocked": 1, "succeeded": 0, "failed": 1, "cancelled": 0}
    assert 7200 <= found.value("rtq_workflows_blocked_age_seconds") < 7300


def test_a_collector_is_registered_without_redis(monkeypatch):
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry(auto_describe=True)
    registry.register(RTQCollector())
    assert not command_hooks


def test_a_worker_counts_what_it_does(rtq_worker, broker, scrape):
    good = tasks.note.delay_many([((f"job-{number}",), {}) for number in range(5)])
    rtq_worker()
    for job in good:
        job.get(PATIENCE)

    name = tasks.note.name
    wait_until(lambda: scrape().value("rtq_task_runs_succeeded_total", queue=QUEUE, task=name) == 5)
    found = scrape()
    assert found.value("rtq_jobs_succeeded_total", queue=QUEUE) == 5
    assert found.value("rtq_task_run_seconds_count", task=name) == 5
    assert found.value("rtq_queue_wait_seconds_count", queue=QUEUE) == 5
    assert sum(found.of("rtq_worker_slots").values()) == 1
    assert found.value("rtq_queue_slots", queue=QUEUE) == 1
