"""What failed last in a queue."""

from tests.console.lua.test_dead_letters import bury
from tests.support.jobs import QUEUE, dead_job, queued_job, retrying_job
from tests.support.snapshots import snapshot


def test_where_nothing_failed_there_is_nothing(broker, readers):
    queued_job(broker)

    (row,) = readers.overview.read().queues

    assert (row.newest_dead, row.newest_retrying) == (None, None)


def test_the_newest_dead_letter_is_told_by_task_and_error(redis, broker, readers):
    jobs = [bury(broker, task, "a.NoStock", "none left") for task in ("first", "second")]
    redis.zadd(broker.keys.of(QUEUE).dead, {job.id: 1_000 + place for place, job in enumerate(jobs)})
    before = snapshot(redis)

    (row,) = readers.overview.read().queues

    assert (row.newest_dead.id, row.newest_dead.task) == (jobs[1].id, "second")
    assert row.newest_dead.newest_error == ("a.NoStock", "none left")
    assert snapshot(redis) == before


def test_of_those_that_retry_it_is_the_one_that_is_due_last(broker, readers):
    retrying_job(broker, wait_ms=1_000)
    last = retrying_job(broker, wait_ms=90_000, body='{"task":"ship"}')

    (row,) = readers.overview.read().queues

    assert (row.newest_retrying.id, row.newest_retrying.task) == (last.id, "ship")


def test_a_record_that_is_lost_does_no_harm(redis, broker, readers):
    job = dead_job(broker)
    redis.hdel(broker.keys.of(QUEUE).jobs, job.id)
    redis.hdel(broker.keys.of(QUEUE).errors, job.id)

    (row,) = readers.overview.read().queues

    assert (row.newest_dead.task, row.newest_dead.newest_error) == ("", ("", ""))
