"""Lines that jobs have logged."""

from django_rtq.console.log_lines import write_line
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.settlement import LOGS_AT_ONCE, Settlement
from tests.support.jobs import (
    KEEP_MS,
    QUEUE,
    WORKER,
    claimed_job,
    claimed_jobs,
    dead_job,
    new_job,
    settle,
)

LIVE_MS = 90 * 86_400_000


def lines_of(*texts):
    return [write_line(1, 1_800_000_000_000, "INFO", "shop", text) for text in texts]


def append(broker, job, *texts, part="a-1", over_ms="", most=100, worker=WORKER):
    """Send lines of a job, as a worker does."""
    lines = lines_of(*texts)
    arguments = (LIVE_MS, most, job.id, part, over_ms, len(lines), *lines)
    broker.redis.execute_each([SCRIPTS["append_log"].call(broker.keys.of(QUEUE), arguments, worker=worker)])


def texts(readers, job):
    return [line.text for line in readers.find_with_position(job.id)[0].log]


def log_key(broker, job):
    return broker.keys.of(QUEUE).log_of(job.id)


def test_after_the_end_they_are_kept_as_long_as_the_outcome(redis, broker):
    job, other = claimed_jobs(broker, new_job("a"), new_job("b"))
    append(broker, job, "one")

    append(broker, job, part="a-2", over_ms=KEEP_MS)
    append(broker, other, "two", over_ms=2 * KEEP_MS)

    assert KEEP_MS - 60_000 < redis.pttl(log_key(broker, job)) <= KEEP_MS
    assert KEEP_MS < redis.pttl(log_key(broker, other)) <= 2 * KEEP_MS
    assert redis.lrange(broker.keys.of(QUEUE).logged, 0, -1) == [job.id.encode(), other.id.encode()]
    assert LIVE_MS - 60_000 < redis.pttl(broker.keys.of(QUEUE).logged) <= LIVE_MS


def test_a_hundred_kilobytes_are_kept(redis, broker, readers):
    job = claimed_job(broker, "a")
    append(broker, job, *("x" * 900 for _ in range(150)), "last")

    stored = redis.lrange(log_key(broker, job), 0, -1)
    assert 98_000 < sum(map(len, stored)) <= 100_000
    assert texts(readers, job)[-1] == "last"


def test_they_go_with_a_job_that_is_purged(redis, broker, readers):
    job = claimed_job(broker, "a")
    append(broker, job, "one")
    settle(broker, "retry", job)

    readers.sweeps.purge_some(QUEUE, None)

    assert not redis.exists(log_key(broker, job))


def test_what_cannot_be_read_is_no_line(redis, broker, readers):
    job = dead_job(broker, "a")
    redis.rpush(log_key(broker, job), "", "x", "a-1 []", "a-1 {}", "a-1 [1,2,3]", 'a-1 ["x",1,"","",""]', "\xff")

    assert texts(readers, job) == []


def test_one_call_takes_the_lines_of_many_jobs(redis, broker, readers):
    jobs = claimed_jobs(broker, *map(new_job, "abc"))
    parts = [
        [job.id, f"a-{number}", KEEP_MS if number else "", 2, *lines_of("one", job.id)]
        for number, job in enumerate(jobs)
    ]
    parts.insert(1, [new_job("nobody").id, "a-9", KEEP_MS, 0])

    broker.settle(WORKER, QUEUE, Settlement(logs=parts))
    broker.settle(WORKER, QUEUE, Settlement(logs=parts))

    assert [texts(readers, job) for job in jobs] == [["one", job.id] for job in jobs]
    assert redis.lrange(broker.keys.of(QUEUE).logged, 0, -1) == [job.id.encode() for job in jobs[1:]]


def test_the_lines_of_very_many_jobs_are_several_calls(broker):
    parts = [(str(number), f"a-{number}", "", 0) for number in range(2 * LOGS_AT_ONCE + 1)]

    calls = Settlement(logs=parts).commands(*[broker.keys.of(QUEUE)] * 2, WORKER, broker.config)

    assert [sent for sent, _ in calls] == [()] * 3
