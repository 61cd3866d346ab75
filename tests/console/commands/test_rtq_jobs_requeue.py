"""rtq_jobs requeue --to: dead letters go to another queue."""

import pytest
from django.test import override_settings

from tests.support.commands import run
from tests.support.jobs import dead_job
from tests.support.redis_server import LEASE_SECONDS


@pytest.fixture
def rtq_settings(redis, proxy):
    """They name another queue."""
    with override_settings(RTQ={"REDIS": proxy.url, "LEASE_SECONDS": LEASE_SECONDS, "QUEUES": {"bulk": {}}}):
        yield


def test_letters_are_requeued_in_another_queue(broker, readers):
    jobs = [dead_job(broker).id for _ in range(3)]

    ran = run("rtq_jobs", "requeue", jobs[0], "--to", "bulk")
    assert (ran.code, ran.out) == (0, "1 dead letter was requeued in queue bulk.\n")
    assert (
        "No worker serves queue bulk now: the jobs wait. Start one: python manage.py rtq_worker --queues bulk"
        in ran.err
    )
    assert run("rtq_jobs", "requeue", "--all", "--to", "bulk").out == "2 dead letters were requeued in queue bulk.\n"

    assert [(readers.find(job_id).queue, readers.find(job_id).state) for job_id in jobs] == [("bulk", "queued")] * 3


def test_that_the_other_queue_is_paused_is_told(broker, rtq):
    rtq.queues["bulk"].pause()

    assert "Queue bulk is paused" in run("rtq_jobs", "requeue", dead_job(broker).id, "--to", "bulk").err


def test_a_queue_that_settings_do_not_name_is_refused(broker, readers):
    job = dead_job(broker)

    ran = run("rtq_jobs", "requeue", job.id, "--to", "bulkk")

    assert (ran.code, ran.error) == (1, 'Queue bulkk is not one of the settings. Name it in RTQ["QUEUES"].')
    assert readers.find(job.id).state == "dead"
    assert run("rtq_jobs", "requeue", "--all", "--to", "").code == 64
