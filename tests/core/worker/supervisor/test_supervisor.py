"""A supervisor and its processes: replacement, the order of queues, giving up."""

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conservation import assert_nothing_left, records
from tests.support.redis_server import UNREACHABLE
from tests.support.waiting import wait_until


def done(jobs):
    return all(job.state is JobState.SUCCEEDED for job in jobs)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_process_is_replaced_after_so_many_jobs(rtq_worker, redis, journal, concurrency):
    jobs = [tasks.where.delay() for _ in range(50)]
    worker = rtq_worker("--max-jobs", 10, "--concurrency", concurrency)
    wait_until(lambda: done(jobs))

    pids = [job.result[0] for job in jobs]
    assert len(set(pids)) == 5
    assert max(pids.count(pid) for pid in pids) == 10
    assert_nothing_left(redis, worker)


def test_a_process_that_has_grown_too_large_is_replaced(rtq_worker, redis, journal):
    worker = rtq_worker(MAX_MEMORY_MB=1)
    jobs = [tasks.where.delay()]
    wait_until(lambda: done(jobs))
    jobs.append(tasks.where.delay())
    wait_until(lambda: done(jobs))

    assert len({job.result[0] for job in jobs}) == 2
    assert_nothing_left(redis, worker)


def test_with_shuffle_no_queue_starves_another(rtq_worker, redis, journal):
    queues = {name: tasks.note.using(queue_name=name) for name in ("one", "two")}
    jobs = [job for q in queues.values() for job in q.delay_many([((q.queue_name,), {})] * 400)]
    worker = rtq_worker("--queues", "one,two", "--shuffle")
    wait_until(lambda: done(jobs))

    names = journal.names()
    last = {name: len(names) - 1 - names[::-1].index(name) for name in queues}
    first = {name: names.index(name) for name in queues}
    assert max(first.values()) < min(last.values())
    assert_nothing_left(redis, worker)


def test_a_forked_copy_of_a_process_does_not_go_on_as_the_worker(rtq_worker, redis, journal):
    worker = rtq_worker()
    jobs = [tasks.fork.using(max_attempts=1).delay("fork"), *(tasks.where.delay() for _ in range(20))]
    wait_until(lambda: all(job.state.is_final for job in jobs))  # the copy has ended, or it would go on waiting

    assert {job.result[0] for job in jobs[1:]} == {worker.child}
    assert jobs[0].state is JobState.SUCCEEDED
    assert_nothing_left(redis, worker)


def test_an_idle_worker_asks_for_work_without_a_token(rtq_worker, redis, journal):
    """A token got lost: it takes a few seconds, not for ever."""
    worker = rtq_worker()
    wait_until(lambda: [c for c in redis.client_list() if c["cmd"] == "bzpopmin"])
    with redis.pipeline() as pipe:  # nobody sees the token in between
        pipe.multi()
        job = queued_without_token(pipe)
        pipe.execute()
    wait_until(lambda: journal.starts("unannounced") == 1)
    wait_until(lambda: not records(redis))
    assert job
    assert_nothing_left(redis, worker)


def queued_without_token(pipe):
    job_id = f"{1:012x}-unannounced"
    record = '0 3 1 0 \n{"task":"tests.app.tasks.note","args":["unannounced"]}'
    pipe.hset("{rtq:default}:jobs", job_id, record)
    pipe.rpush("{rtq:default}:lane:0:", job_id)
    pipe.zadd("{rtq:default}:ring:0", {"": 1})
    pipe.zadd("{rtq:default}:bands", {"0": 0})
    pipe.zadd("{rtq:default}:lanes", {"0:": 1})
    return job_id


def test_settings_that_make_no_sense_end_a_worker_before_it_starts(rtq_worker, redis):
    worker = rtq_worker(url=UNREACHABLE, is_ready=False, LEASE_SECOND=1)

    assert worker.wait() == 1
    assert "LEASE_SECONDS" in worker.log
