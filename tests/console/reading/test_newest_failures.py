"""What failed last: in a queue, and in groups of dead letters, of those groups that are shown."""

from tests.console.lua.test_dead_letters import bury
from tests.support.jobs import QUEUE, dead_job, retrying_job
from tests.support.snapshots import snapshot


def test_a_message_is_that_of_the_newest_failure(redis, broker, readers):
    bury(broker, "ship", message="first")
    redis.zadd(broker.keys.of(QUEUE).dead, {bury(broker, "ship", message="last").id: 10**14})

    (group,) = readers.dead_letters.all_groups().groups
    assert (group.message, group.count) == ("", 2)

    (group,) = readers.dead_letters.with_messages([group])
    assert (group.queue, group.message, group.count, group.task) == (QUEUE, "last", 2, "ship")


def test_a_dead_letter_that_has_left_has_no_message(redis, broker, readers):
    job = bury(broker, "ship")
    groups = readers.dead_letters.all_groups().groups
    readers.actions.done("discard", QUEUE, [job.id])

    (group,) = readers.dead_letters.with_messages(groups)

    assert group.message == ""


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
