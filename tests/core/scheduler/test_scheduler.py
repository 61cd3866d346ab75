"""The scheduler promotes due jobs and removes what has expired (G7)."""

import threading
import time

import pytest

from django_rtq import signals
from django_rtq.core.broker.worker_broker import UNUSED_MS
from django_rtq.core.scheduler import scheduler as scheduler_module
from django_rtq.core.scheduler.scheduler import MAX_WAIT_SECONDS, RESTART_CHECK_SECONDS, Scheduler
from tests.support.jobs import QUEUE, claim_all, finished_job, let_fall_due, queued_job, receiving, scheduled_job
from tests.support.snapshots import place_of
from tests.support.waiting import server_ms, wait_until


@pytest.fixture
def scheduler(broker):
    scheduler = Scheduler(broker, [QUEUE, "low"])
    yield scheduler
    scheduler.stop()


@pytest.fixture
def promoted():
    """What was said to be promoted."""
    found = []
    with receiving(lambda job_ids, queue, **_: found.extend((queue, each) for each in job_ids), signals.job_promoted):
        yield found


def is_queued(redis, job, queue=QUEUE):
    return redis.lpos(f"{{rtq:{queue}}}:lane:0:", job.id) is not None


def test_a_tick_queues_what_is_due_in_all_its_queues_and_says_so(redis, broker, scheduler, promoted):
    due, later = scheduled_job(broker), scheduled_job(broker)
    low = scheduled_job(broker, queue="low", due="+1")
    let_fall_due(broker, due)
    wait_until(lambda: scheduler.tick() > 1 and is_queued(redis, low, "low"))

    assert place_of(redis, due) == "lane:0:"
    assert place_of(redis, later) == "scheduled"
    assert sorted(promoted) == sorted([(QUEUE, due.id), ("low", low.id)])


def test_a_tick_tells_the_time_until_the_next_is_due(redis, broker, scheduler, monkeypatch):
    # Tasks of other tests have schedules, of which a slot may come in less than a minute.
    monkeypatch.setattr(scheduler._dispatcher, "fire_due", lambda: None)
    assert scheduler.tick() == pytest.approx(MAX_WAIT_SECONDS, abs=1)
    scheduled_job(broker, due="+3600000")
    assert scheduler.tick() == pytest.approx(MAX_WAIT_SECONDS, abs=1)
    began = server_ms(redis)
    scheduled_job(broker, due="+30000")
    wait = scheduler.tick()
    assert 30 - (server_ms(redis) + 1 - began) / 1000 <= wait <= 30  # whole milliseconds


def test_many_due_jobs_are_queued_in_steps(redis, broker, scheduler):
    jobs = [scheduled_job(broker) for _ in range(550)]
    let_fall_due(broker, *jobs)
    queued = []
    while scheduler.tick() == 0:
        queued.append(redis.llen("{rtq:default}:lane:0:"))

    assert queued == [100, 500]  # a first step, then several at once
    assert claim_all(broker, 500) == [job.id for job in jobs]


def test_a_tick_forgets_what_was_kept_long_enough(redis, broker, scheduler):
    job = finished_job(broker)
    redis.hset("{rtq:default}:results", job.id, "1 1 {}")
    scheduler.tick()

    assert not redis.exists("{rtq:default}:results")


def test_queues_that_are_not_used_any_more_are_forgotten(redis, broker, scheduler, readers, caplog, monkeypatch):
    monkeypatch.setattr("django_rtq.core.tasks.registry.declared_queues", lambda backend: ["declared"])
    used_lately = {"used": time.time_ns() // 1_000_000 - UNUSED_MS + 60_000, "typo": 1}
    for name, contact in used_lately.items():
        redis.hset(f"{{rtq:{name}}}:clock", "contact", contact)
    queued_job(broker, queue="busy")
    broker.register_queues([QUEUE, "declared", "typo", "used"])
    caplog.set_level("INFO", "django_rtq")

    scheduler.tick()

    assert readers.queues.names() == ["busy", "declared", QUEUE, "used"]
    assert caplog.messages == ["queue typo is forgotten: it is empty, not declared, and had no worker for a day"]
    broker.register_queues(["typo"])
    scheduler.tick()
    assert "typo" in readers.queues.names()  # not before the next hour


def test_a_job_is_queued_when_it_falls_due_and_not_before(redis, broker, scheduler):
    scheduler.start()
    made = time.monotonic()
    jobs = [scheduled_job(broker, due=f"+{ms}") for ms in (150, 300, 450)]
    waits = []
    for job in jobs:
        wait_until(lambda job=job: is_queued(redis, job))
        waits.append(time.monotonic() - made)

    for wait, ms in zip(waits, (150, 300, 450), strict=True):
        assert ms / 1000 - 0.001 <= wait  # 50 ms later at most, on an idle machine


def test_an_earlier_job_wakes_a_scheduler_that_sleeps(redis, broker, scheduler):
    scheduled_job(broker, due="+60000")
    scheduler.start()
    wait_until(lambda: [c for c in redis.client_list() if c["cmd"] == "bzpopmin"])
    early = scheduled_job(broker, due="+50")
    wait_until(lambda: is_queued(redis, early))


def test_a_scheduler_can_be_stopped_at_any_moment(redis, broker):
    for number in range(30):
        scheduler = Scheduler(broker, [QUEUE])
        scheduler.start()
        until = time.monotonic() + number * 0.0003
        wait_until(lambda until=until: time.monotonic() > until)
        scheduler.stop()  # waits for a few seconds: a busy machine may take longer

        wait_until(lambda: not [t for t in threading.enumerate() if t.name == "rtq-scheduler"])


def test_a_cut_connection_costs_a_moment(redis, broker, scheduler):
    scheduler.start()
    wait_until(lambda: [c for c in redis.client_list() if c["cmd"] == "bzpopmin"])
    for client in redis.clients_of_ours():
        redis.client_kill_filter(_id=client["id"])
    job = scheduled_job(broker, due="+20")
    wait_until(lambda: is_queued(redis, job))


def test_it_looks_whether_redis_was_restarted_when_it_begins_and_when_its_connection_was_lost(
    broker, scheduler, monkeypatch
):
    looks = []
    monkeypatch.setattr(broker, "rewrite_log_after_restart", lambda: looks.append(1) or "same")
    monkeypatch.setattr(scheduler_module, "CHECK_SECONDS", 0.01)
    for _ in range(2):
        scheduler.tick()
        scheduler.wait(0.02)
    assert len(looks) == 1

    scheduler._reader.close()
    scheduler.wait(MAX_WAIT_SECONDS)  # it ends
    scheduler.tick()
    scheduler.tick()
    assert len(looks) == 2

    scheduler._next_restart_check -= RESTART_CHECK_SECONDS
    scheduler.tick()
    assert len(looks) == 3
    scheduler._reader.close()
