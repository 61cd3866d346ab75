"""Who holds which jobs."""

import pytest

from django_rtq.console.histogram import bucket_of
from django_rtq.console.reading import overview
from django_rtq.core.broker.settlement import Settlement
from tests.support.jobs import QUEUE, WORKER, claimed_job, claimed_jobs, let_lapse, new_job
from tests.support.redis_server import LEASE_SECONDS

BODY = '{"task":"shop.tasks.ship","args":[1],"time_limit":2.5}'
NOTE = {
    "host": "web1",
    "pid": 11,
    "supervisor": 10,
    "queues": f"{QUEUE},low",
    "jobs_done": 7,
    "slots": 4,
    "version": "0.1.0",
    "memory": 1024,
    "up_seconds": "60",
    "claim_seconds": "0.5",
}


def test_of_each_job_is_told_what_runs_where_since_when(redis, broker, readers):
    job = claimed_job(broker, client="acme", body=BODY)

    (worker,) = readers.workers()

    (running,) = worker.running
    assert (running.id, running.task, running.client, running.attempt) == (job.id, "shop.tasks.ship", "acme", 1)
    assert (running.worker, running.queue, running.time_limit) == (WORKER, QUEUE, 2.5)
    assert 0 <= running.seconds < 5
    assert 0 < running.lease_left_seconds <= LEASE_SECONDS


def test_a_worker_is_told_with_its_note(redis, broker, readers):
    broker.sign_on([QUEUE], WORKER)
    broker.heartbeat([QUEUE], {WORKER: NOTE}, promote=False)

    (worker,) = readers.workers()

    assert (worker.host, worker.pid, worker.supervisor, worker.queues) == ("web1", 11, 10, [QUEUE, "low"])
    assert (worker.jobs_done, worker.slots, worker.busy, worker.memory_bytes) == (7, 4, 0, 1024)
    assert worker.up_seconds == pytest.approx(60, abs=2)
    assert worker.last_claim_seconds == pytest.approx(0.5, abs=2)


def test_a_lease_that_is_over_has_less_than_nothing_left(redis, broker, readers):
    claimed_job(broker)
    let_lapse(broker, WORKER)

    (worker,) = readers.workers()

    assert worker.lease_left_seconds < 0
    assert worker.running[0].lease_left_seconds < 0


def test_a_lost_or_unreadable_record_hides_no_job(redis, broker, readers):
    jobs = claimed_jobs(broker, new_job("a"), new_job("b"))
    redis.hset(broker.keys.of(QUEUE).jobs, jobs[0].id, "nonsense")
    redis.hdel(broker.keys.of(QUEUE).jobs, jobs[1].id)

    (worker,) = readers.workers()

    assert sorted((job.id, job.task) for job in worker.running) == sorted((job.id, "") for job in jobs)


def test_of_a_huge_record_only_the_beginning_is_read(redis, broker, readers):
    claimed_job(broker, body='{"task":"shop.tasks.ship","args":["' + "x" * 100_000 + '"]}')

    assert readers.workers()[0].running[0].task == "shop.tasks.ship"


def test_of_very_many_jobs_only_some_are_told(redis, broker, readers, monkeypatch):
    monkeypatch.setattr(overview, "MAX_RUNNING_SHOWN", 3)
    claimed_jobs(broker, *(new_job() for _ in range(5)))

    (worker,) = readers.workers()

    assert len(worker.running) == 3


def test_it_is_told_how_long_a_task_usually_runs(broker, readers):
    claimed_job(broker, body='{"task":"ship"}')
    broker.register_queues(["other"])  # which no worker serves now
    broker.settle(WORKER, "other", Settlement(metrics=[(0, 0, 1, f"r{bucket_of(2.0)} ship", 100)]))

    for (worker,) in (readers.workers(with_usual=True), readers.overview.read().workers):
        assert worker.running[0].usual_seconds == pytest.approx(2, rel=0.13)
