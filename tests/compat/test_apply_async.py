"""apply_async(): Celery's options, and what it refuses."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_rtq import task
from django_rtq.core.jobs.job import JobState
from django_rtq.exceptions import InvalidTask


@task(queue_name="mail", priority=1)
def send(to, *, subject=""):
    """A task."""


def found(readers, handle):
    return readers.find(handle.id)


def test_without_options_it_is_delay(broker, readers):
    job = found(readers, send.apply_async(["ann"], {"subject": "hi"}))

    assert (job.queue, job.args, job.kwargs, job.state) == ("mail", ["ann"], {"subject": "hi"}, JobState.QUEUED)
    assert found(readers, send.apply_async(("ann",))).priority == 1
    with pytest.raises(TypeError, match="missing a required argument: 'to'"):
        send.apply_async()


def test_queue_priority_time_limit_and_headers_are_those_of_using(broker, readers):
    job = found(readers, send.apply_async(["ann"], queue="bulk", priority=9, time_limit=30, headers={"tenant": "a"}))

    assert (job.queue, job.priority, job.options["time_limit"]) == ("bulk", 9, 30)
    assert job.headers == {"tenant": "a"}


def test_what_is_none_is_not_given(broker, readers):
    options = dict.fromkeys(("countdown", "eta", "expires", "queue", "priority", "time_limit", "headers"))

    job = found(readers, send.apply_async(["ann"], None, **options))

    assert (job.queue, job.priority, job.state, job.expires_at) == ("mail", 1, JobState.QUEUED, None)


@pytest.mark.parametrize("option", ["countdown", "eta"])
def test_a_delay_is_a_number_of_seconds_or_a_moment(broker, readers, option):
    delay = {"countdown": 60, "eta": timezone.now() + timedelta(seconds=60)}[option]

    job = found(readers, send.apply_async(["ann"], **{option: delay}))

    assert job.state is JobState.SCHEDULED
    assert abs(job.due_at - timezone.now() - timedelta(seconds=60)) < timedelta(seconds=20)


@pytest.mark.parametrize("expires", [120, timedelta(seconds=120)])
@pytest.mark.parametrize("delay", [{}, {"countdown": 60}])
def test_expires_counts_from_now(broker, readers, expires, delay):
    job = found(readers, send.apply_async(["ann"], expires=expires, **delay))

    assert abs(job.expires_at - timezone.now() - timedelta(seconds=120)) < timedelta(seconds=20)


def test_it_may_expire_at_a_moment(broker, readers):
    moment = timezone.now() + timedelta(hours=1)

    job = found(readers, send.apply_async(["ann"], countdown=5, expires=moment))

    assert abs(job.expires_at - moment) <= timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"link": 1}, "apply_async() does not take 'link'. Use a workflow"),
        ({"chord": 1}, "does not take 'chord'. Use a workflow"),
        ({"task_id": "x"}, "does not take 'task_id'. Ids are made by delay()."),
        ({"routing_key": "x"}, "does not take 'routing_key'. Use .using(queue_name=…)."),
        (
            {"cuontdown": 1},
            "Did you mean countdown? It takes: countdown, eta, expires, headers, priority, queue",
        ),
        ({"countdown": 1, "eta": timezone.now()}, "takes countdown or eta, not both"),
        ({"priority": 255}, "priority is 255, but has to be a whole number from -100 to 100"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_a_cure(options, message):
    with pytest.raises(InvalidTask) as caught:
        send.apply_async(["ann"], **options)
    assert message in str(caught.value)
