"""Odd exceptions and results of jobs, and records that a worker cannot read."""

import json

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled, assert_nothing_left
from tests.support.jobs import queued_job
from tests.support.waiting import wait_until


def test_whatever_a_job_raises_it_has_failed_and_the_worker_goes_on(rtq_worker, redis, journal):
    jobs = {kind: tasks.raises.using(max_attempts=2).delay(kind) for kind in tasks.ERRORS}
    jobs["deep"] = tasks.deep.using(max_attempts=2).delay()
    after = tasks.note.delay("after")
    worker = rtq_worker()
    child = worker.child
    wait_until(lambda: all(job.state is JobState.DEAD for job in jobs.values()))

    details = {kind: job.refresh() for kind, job in jobs.items()}
    assert {kind: (d.failures, d.crashes) for kind, d in details.items()} == dict.fromkeys(jobs, (2, 0))
    errors = {kind: d.errors[-1] for kind, d in details.items()}
    assert errors["broken"]["error_class"] == "tests.app.tasks.BrokenText"
    assert errors["exit"]["error_class"] == "builtins.SystemExit"
    assert len(errors["huge"]["error"]) <= 2_000
    assert all(len(json.dumps(error)) < 100_000 for error in errors.values())
    assert "tests/app/tasks.py" in errors["base"]["traceback"]
    assert "django_rtq/core/worker" not in errors["base"]["traceback"]
    assert after.state is JobState.SUCCEEDED
    assert worker.child == child
    assert_all_settled(redis, worker)


def test_an_unknown_task_is_parked_without_being_counted_and_dead_after_a_day(rtq_worker, redis, broker, journal):
    """A day since a worker first did not know it, not since it could have started first: it may have waited long."""
    body = '{"task":"shop.tasks.of_next_week"}'
    new, late, old, requeued = (queued_job(broker, name, body=body) for name in ("new", "late", "old", "again"))
    day_ago = redis.time()[0] * 1000 - 86_500_000
    for job in (late, old):
        record = redis.hget("{rtq:default}:jobs", job.id)
        redis.hset("{rtq:default}:jobs", job.id, record.replace(record.split(b" ")[2], b"%d" % day_ago))
    line = json.dumps({"at": day_ago, "error_class": "django_rtq.exceptions.TaskNotFound"})
    for job in (old, requeued):
        redis.hset("{rtq:default}:errors", job.id, f"{line}\n")
    worker = rtq_worker()
    wait_until(lambda: redis.zcard("{rtq:default}:dead") and redis.zcard("{rtq:default}:scheduled") == 3)

    assert all(redis.zscore("{rtq:default}:scheduled", job.id) for job in (new, late, requeued))
    assert redis.zscore("{rtq:default}:dead", old.id)
    assert redis.hlen("{rtq:default}:failures") == 0
    assert b"TaskNotFound" in redis.hget("{rtq:default}:errors", new.id)
    worker.stop()
    assert redis.hlen("{rtq:default}:jobs") == 4


UNREADABLE = {
    "no header": b"\x80\x81",
    "empty": b"",
    "no JSON": b"0 3 1 0 \nnot JSON",
    "cut": b'0 3 1 0 \n{"task":"tests.app.tasks.note","args":["a',
    "a list": b"0 3 1 0 \n[1]",
    "no task": b"0 3 1 0 \n{}",
    "odd task": b'0 3 1 0 \n{"task":[1]}',
    "odd args": b'0 3 1 0 \n{"task":"tests.app.tasks.note","args":5}',
    "odd kwargs": b'0 3 1 0 \n{"task":"tests.app.tasks.note","kwargs":[1]}',
    "odd limit": b'0 3 1 0 \n{"task":"tests.app.tasks.note","args":["x"],"time_limit":"soon"}',
    "odd backoff": b'0 3 1 0 \n{"task":"tests.app.tasks.note","backoff":{"base":"some"}}',
    "odd attempts": b'0 3 1 0 \n{"task":"tests.app.tasks.note","max_attempts":"some"}',
    "odd ttl": b'0 3 1 0 \n{"task":"tests.app.tasks.note","args":["x"],"result_ttl":"long"}',
    "odd client": b'0 3 1 0 \xff\n{"task":"tests.app.tasks.attempts","args":["x",1]}',
    "bomb": b'0 3 1 0 \n{"task":"tests.app.tasks.note","args":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "bits": bytes(range(256)),
}


def test_records_that_cannot_be_read_are_buried_as_they_are(rtq_worker, redis, broker, journal):
    jobs = {}
    for kind, record in UNREADABLE.items():
        jobs[kind] = queued_job(broker, kind.replace(" ", "_")).id
        redis.hset("{rtq:default}:jobs", jobs[kind], record)
    after = tasks.note.delay("after")
    worker = rtq_worker("--concurrency", 2)
    child = worker.child
    wait_until(lambda: redis.zcard("{rtq:default}:dead") == len(UNREADABLE) and after.state.is_final)

    assert {kind: redis.hget("{rtq:default}:jobs", job_id) for kind, job_id in jobs.items()} == UNREADABLE
    assert redis.hlen("{rtq:default}:crashes") == 0
    assert {kind for kind, job_id in jobs.items() if not redis.hget("{rtq:default}:errors", job_id)} == set()
    assert after.state is JobState.SUCCEEDED
    assert worker.child == child
    assert_all_settled(redis, worker)


ODD_IDS = {"long": b"0" * 256, "very long": b"0" * 70_000, "no text": b"\xff\xfe", "empty": b""}


@pytest.mark.parametrize("concurrency", [1, 2])
def test_jobs_with_odd_ids_are_buried_and_end_no_process(rtq_worker, redis, broker, journal, concurrency):
    """Ids that no caller of ours makes: whoever writes to Redis directly can."""
    record = b'0 3 1 0 \n{"task":"tests.app.tasks.raises","args":["base"],"max_attempts":1}'
    tasks.note.delay("before")
    redis.hset("{rtq:default}:jobs", mapping=dict.fromkeys(ODD_IDS.values(), record))
    redis.rpush("{rtq:default}:lane:0:", *ODD_IDS.values())
    after = tasks.note.delay("after")
    worker = rtq_worker("--concurrency", concurrency)
    child = worker.child
    wait_until(lambda: redis.zcard("{rtq:default}:dead") == len(ODD_IDS) and after.state.is_final)

    assert set(redis.zrange("{rtq:default}:dead", 0, -1)) == set(ODD_IDS.values())
    assert redis.hlen("{rtq:default}:crashes") == 0
    assert after.state is JobState.SUCCEEDED
    assert worker.child == child
    worker.stop()


def test_a_settlement_that_is_refused_holds_up_nobody_else(rtq_worker, redis, broker, journal):
    """The key of the outcomes is of the wrong type, say: acks of this queue fail, other queues work."""
    worker = rtq_worker("--queues", "default,low")
    redis.set("{rtq:default}:results", "a string")
    stuck = tasks.note.delay("stuck")
    journal.wait("end", "stuck")
    low = tasks.note.using(queue_name="low").delay("low")
    wait_until(lambda: low.state is JobState.SUCCEEDED)
    redis.delete("{rtq:default}:results")
    wait_until(lambda: stuck.state is JobState.SUCCEEDED)

    assert journal.starts("stuck") == 1
    assert_nothing_left(redis, worker)
