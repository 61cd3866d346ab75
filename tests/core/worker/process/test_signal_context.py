"""Receivers of the signals of a job share its context variables, and those of no other job."""

import json

import pytest
from django.utils import timezone, translation

from django_rtq import signals
from django_rtq.core.jobs.context import current_job
from django_rtq.core.worker.process.process import runner_class
from django_rtq.core.worker.shared_memory import SharedState
from tests.app.context_tasks import TENANT
from tests.core.worker.claimed_runs import claim_unread
from tests.support.jobs import queued_job
from tests.support.receivers import receiving
from tests.support.waiting import wait_until

OUTCOMES = (signals.job_succeeded, signals.job_retried, signals.job_buried, signals.job_expired)


@pytest.fixture(params=[1, 2], ids=["one slot", "two slots"])
def runner(request, broker, session):
    runner = runner_class(request.param)(broker.config, SharedState(request.param), session)
    yield runner
    runner.stop()


@pytest.fixture
def heard():
    """The tenant that receivers find at the start and at the end of each job, in order, and the job that they see."""
    found = []

    def begin(*, job, **kwargs):
        found.append((job.id, "start", TENANT.get(), current_job().job_id))
        if job.args[0]:
            TENANT.set(job.args[0])
            translation.activate("de")
            timezone.activate("Asia/Tokyo")

    def end(*, job, **said):
        found.append((job.id, said.get("result"), TENANT.get(), current_job().job_id))

    with receiving(begin, signals.job_started), receiving(end, *OUTCOMES):
        yield found


def run(broker, session, runner, task, *names):
    """The ids of jobs that have run, one after the other."""
    body = '{"task":"tests.app.%s","args":[%s]}'
    jobs = [queued_job(broker, body=body % (task, json.dumps(name))) for name in names]
    for _ in jobs:
        runner.run(claim_unread(session, 1))
        wait_until(lambda: runner.is_idle)
    return [job.id for job in jobs]


def kept(text):
    return json.loads(text)["result"]


@pytest.mark.parametrize("task", ["context_tasks.tenant", "context_tasks.atenant"])
def test_what_a_receiver_of_job_started_sets_holds_for_that_job_alone(broker, session, runner, heard, task):
    first, second, third = run(broker, session, runner, task, "one", None, "three")

    assert [(job_id, tenant, seen) for job_id, _, tenant, seen in heard] == [
        (first, None, first),
        (first, "one", first),
        (second, None, second),
        (second, None, second),
        (third, None, third),
        (third, "three", third),
    ]
    assert [kept(result) for _, result, _, _ in heard[1::2]] == [
        ["one", "de", "Asia/Tokyo"],
        [None, "en", "UTC"],
        ["three", "de", "Asia/Tokyo"],
    ]
    assert TENANT.get() is None


@pytest.mark.parametrize("task", ["tasks.attempts", "tasks.raises", "tasks.aleave"])
def test_receivers_of_a_failure_find_it_too(broker, session, runner, heard, journal, task):
    (job_id,) = run(broker, session, runner, task, "one")

    assert [(entry[0], entry[2]) for entry in heard] == [(job_id, None), (job_id, "one")]


def test_what_a_receiver_sets_for_a_job_that_never_began_is_seen_by_no_other(broker, session, runner, heard):
    with receiving(lambda **_: TENANT.set("left"), signals.job_buried):
        queued_job(broker, body="no JSON")
        runner.run(claim_unread(session))
        wait_until(lambda: runner.is_idle)
        (job_id,) = run(broker, session, runner, "context_tasks.tenant", None)

    assert [entry[2] for entry in heard if entry[0] == job_id] == [None, None]
    assert TENANT.get() is None
