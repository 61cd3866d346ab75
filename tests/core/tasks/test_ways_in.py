"""What delay() does besides storing a job, asked of every way in."""

from contextlib import nullcontext, suppress

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone

from django_rtq import QueueFull, every, signals, task
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.messages import EnqueueCall
from django_rtq.core.extension import required
from django_rtq.core.scheduler.registry import ScheduledTask
from django_rtq.core.tasks.task import new_job
from tests.app.tasks import note
from tests.support.apps import drain, outbox_rows, relay, workflow
from tests.support.jobs import receiving

pytestmark = pytest.mark.usefixtures("transactional_db", "broker")
TASK = note.using(queue_name="ways", client="acme")


@task(takes_context=True)
def add_to_workflow(context, calls):
    for args in calls:
        context.workflow.add(TASK, *args)


@task
def do_nothing():
    pass


def on_commit(send):
    """Within a transaction, whose commit sends."""

    def commit(*args):
        with transaction.atomic():
            send(*args)

    return commit


def schedule(*args):
    entry = ScheduledTask(task=TASK, schedule=every(seconds=60, name="ways", args=args))
    get_broker().schedules.begin("ways", entry.name, entry.definition, 0)
    entry.fire(get_broker(), 60_000)


def in_workflow(*args):
    with workflow("ways") as flow:
        flow.add(TASK, *args)


def added(*args):
    with workflow("ways") as flow:
        flow.add(add_to_workflow, [args])
    drain(["default"], raise_errors=False)


def later_step(*args):
    with workflow("ways") as flow:
        flow.after(flow.add(do_nothing.using(queue_name="before"))).add(TASK, *args)
    drain(["before"])


def in_django(*args):
    pytest.importorskip("django_rtq.backend")
    from tests.app import django_tasks  # tasks of the backend

    django_tasks.note.using(queue_name="ways").enqueue(*args)


def from_outbox(*args):
    rows = outbox_rows("default")
    required("outbox").store("default", TASK.name, EnqueueCall("ways", [new_job(TASK, args, {})]))
    rows.update(due_at=timezone.now())
    relay(get_broker(), "default")


WAYS = {
    "delay": TASK.delay,
    "adelay": async_to_sync(TASK.adelay),
    "delay_many": lambda *args: TASK.delay_many([(args, {})]),
    "adelay_many": lambda *args: async_to_sync(TASK.adelay_many)([(args, {})]),
    "delay_on_commit": on_commit(TASK.delay_on_commit),
    "workflow": in_workflow,
    "step that starts later": later_step,
    "added by a job": added,
    "schedule": schedule,
    "django.tasks": in_django,
    "outbox": from_outbox,
}
NEVER_REFUSED = {"step that starts later", "added by a job"}  # their workflow is there already


@pytest.fixture
def told():
    """What job_enqueued has told of the queue."""
    found = []

    def receive(sender, job_ids, queue, task, **kwargs):
        if queue == "ways":
            found.append((list(job_ids), task))

    with receiving(receive, signals.job_enqueued):
        yield found


@pytest.mark.parametrize("way", WAYS)
def test_receivers_are_told_and_the_queue_is_known_and_idle_workers_wake(redis, readers, told, way):
    WAYS[way]("a")

    (job,) = readers.search([("ways", "queued")]).page().jobs
    assert told == [([job.id], job.task)]
    assert "ways" in readers.queues.names()
    assert redis.exists("{rtq:ways}:work_signal")
    assert way == "django.tasks" or job.client == "acme"


@pytest.mark.parametrize("way", WAYS)
def test_arguments_are_checked_before_anything_is_stored(redis, told, way):
    with nullcontext() if way == "added by a job" else pytest.raises(TypeError):  # that job fails
        WAYS[way]("a", "b", "c")
    assert told == []
    assert redis.hlen("{rtq:ways}:jobs") == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_full_queue_refuses_new_jobs(redis, told, way, rtq):
    rtq.queues["ways"].limit(max_waiting=1)
    TASK.delay("first")
    with suppress(QueueFull):  # a scheduler goes on without this job, and a relay tries again
        WAYS[way]("a")

    assert redis.hlen("{rtq:ways}:jobs") == len(told) == (2 if way in NEVER_REFUSED else 1)
