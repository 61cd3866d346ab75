"""What jobs log is kept by real workers: functions, threads and coroutines; killed processes; Redis that is away."""

import pytest

from django_rtq import JobState
from django_rtq.console.reading.readers import readers_of
from tests.app import logging_tasks
from tests.support.waiting import PATIENCE, wait_until

MODULES = {"TASK_MODULES": ["tasks", "logging_tasks"]}
LOGS = {"JOB_LOGS": "INFO", **MODULES}


def log_of(readers, job):
    job_details, _ = readers.find_with_position(job.id)
    return job_details.log


def texts(readers, job):
    return [line.text for line in log_of(readers, job)]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_lines_of_each_job_are_its_own(rtq_worker, readers, concurrency):
    rtq_worker("--concurrency", concurrency, **LOGS)
    jobs = [logging_tasks.say.delay(f"{i}", f"{i} again") for i in range(30)]
    others = [logging_tasks.asay.delay(f"{i}", f"{i} again") for i in range(30)]

    for i, (job, other) in enumerate(zip(jobs, others, strict=True)):
        job.get(PATIENCE), other.get(PATIENCE)
        assert texts(readers, job) == [f"{i}", f"{i} again"]
        assert texts(readers, other) == [f"{i}", f"{i} again", "in a thread"]
    (line, _) = log_of(readers, jobs[0])
    assert (line.attempt, line.level, line.logger) == (1, "INFO", "tests.shop")
    assert line.at >= jobs[0].refresh().made_at


@pytest.mark.parametrize(("name", "concurrency"), [("say_and_wait", 1), ("asay_and_wait", 3)])
def test_lines_are_there_while_the_job_runs(rtq_worker, journal, readers, concurrency, name):
    rtq_worker("--concurrency", concurrency, **LOGS)
    job = getattr(logging_tasks, name).delay("a", "gate")
    journal.wait("start", "a")

    wait_until(lambda: texts(readers, job) == ["a waits"])
    journal.open("gate")
    job.get(PATIENCE)

    assert texts(readers, job) == ["a waits", "a goes on"]


def test_what_it_logged_before_its_process_was_killed_is_kept(rtq_worker, journal, readers, redis):
    rtq_worker(**LOGS)
    job = journal.begin(logging_tasks.die_when_told, "a", "gate")
    wait_until(lambda: texts(readers, job))
    journal.open("gate")
    wait_until(lambda: job.refresh().state is JobState.DEAD)

    assert texts(readers, job) == ["a is about to die"]
    assert redis.ttl(f"{{rtq:default}}:log:{job.id}") > 80 * 86_400  # as long as the dead letter
    readers.actions.done("discard", "default", [job.id])
    assert not redis.exists(f"{{rtq:default}}:log:{job.id}")


def test_odd_records_harm_nobody(rtq_worker, readers):
    rtq_worker(**LOGS)
    job = logging_tasks.log_oddly.delay()
    job.get(PATIENCE)
    found = texts(readers, job)

    assert found[0] == "%d (TypeError: the line could not be formatted)"
    assert found[1] == "%s (ValueError: the line could not be formatted)"
    assert found[2] == " (ValueError: the line could not be formatted)"
    assert found[3] == "?"
    assert found[4] == "x" * 999 + "…"
    assert found[5] == "by a logger that does not propagate"
    message, *traceback = found[6].splitlines()
    assert (message, traceback[-1]) == ("failed within", "KeyError: 'inner'")
    assert len(found) == 7


def test_jobs_run_on_while_redis_is_away_and_their_lines_come_later(start, fragile, journal):
    start(**LOGS)
    job = journal.begin(logging_tasks.say_and_wait, "a", "gate")
    wait_until(lambda: texts(readers_of(), job))
    fragile.kill()
    journal.open("gate")
    journal.wait("end", "a")
    fragile.start()
    job.get(PATIENCE)

    assert texts(readers_of(), job) == ["a waits", "a goes on"]
