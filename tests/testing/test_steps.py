"""Jobs that remember, in tests of a project: eager(), drain() and captured()."""

import asyncio
from datetime import timedelta

import pytest
from django.db import transaction

from django_rtq import EventTimeout, InvalidStep, JobContext, WrongState, task
from django_rtq.core.handle import JobHandle
from django_rtq.exceptions import PayloadTooLarge, Unserializable
from django_rtq.testing import captured, drain, eager
from django_rtq.workflows.steps import job_steps
from tests.app import step_tasks as tasks
from tests.support.snapshots import snapshot

done = []


@pytest.fixture(autouse=True)
def journal(monkeypatch):
    """What the steps of the tasks did."""
    done.clear()
    monkeypatch.setattr(tasks.journal, "write", lambda word, name: done.append(name) if word == "start" else None)
    return done


def test_eager_answers_waits(journal):
    with eager(events={"approved": {"by": "eve"}}) as runs:
        job = tasks.order.delay("a")

        assert job.get() == "shipped for eve"
    assert [run.state for run in runs] == ["scheduled", "succeeded"]
    assert journal == ["a run", "a charge", "a run", "a ship"]


@pytest.mark.parametrize("order", [tasks.order, tasks.aorder])
def test_without_an_answer_time_passes(order):
    with eager():
        assert order.delay("a", timeout=3600).get() == "refunded c1"


@pytest.mark.parametrize("naps", [tasks.naps, tasks.anaps])
def test_sleeps_are_over_at_once(journal, naps):
    with eager() as runs:
        assert naps.delay("a", 3600).get() == 1
    assert len(runs) == 3
    assert [name for name in journal if name != "a run"] == ["a 0", "a 1"]


@pytest.mark.parametrize("retries", [False, True])
def test_a_job_that_fails_remembers_its_steps(journal, retries):
    with eager(retries=retries, propagate=False) as runs:
        tasks.fail_between.delay("a")

    assert [run.state for run in runs] == (["retrying"] * 2 + ["succeeded"] if retries else ["retrying"])
    assert journal.count("a first") == 1


@task(takes_context=True)
def ask_itself(context):
    JobHandle(context.job_id, "default").send("answer", 5)
    return context.wait("answer")


def test_a_job_gets_what_is_sent_to_it_while_it_runs():
    with eager():
        assert ask_itself.delay().get() == 5


def test_a_job_that_waits_for_ever_goes_on_when_it_gets_its_event(journal):
    with eager():
        job = tasks.order.delay("a")
        assert job.state == "scheduled"
        with pytest.raises(WrongState, match="waits for event 'approved', for ever"):
            job.get()
        job.send("other")
        assert job.state == "scheduled"

        job.send("approved", {"by": "eve"})

        assert job.get() == "shipped for eve"
        with pytest.raises(WrongState, match="is over"):
            job.send("approved")
    assert journal.count("a charge") == 1


def test_coroutines_send_in_eager():
    with eager():
        job = tasks.read_all.delay(2)
        asyncio.run(job.asend("comment", 1))
        asyncio.run(job.asend("comment", 2))

        assert job.get() == [1, 2]


def test_captured_collects_events():
    with captured() as jobs:
        job = tasks.order.delay("a")
        job.send("approved", {"by": "eve"})

    assert jobs[0].events == [("approved", {"by": "eve"})]


@pytest.mark.usefixtures("broker")
class TestDrain:
    def test_it_leaves_jobs_that_wait(self, journal):
        job = tasks.order.delay("a")

        assert [run.state for run in drain()] == ["scheduled"]
        assert drain() == []

        job.send("approved", {"by": "eve"})
        assert [run.result for run in drain()] == ["shipped for eve"]
        assert journal == ["a run", "a charge", "a run", "a ship"]

    def test_until_goes_through_sleeps(self, journal):
        tasks.naps.delay("a", 3600, 3)
        drain()

        assert [run.state for run in drain(until=timedelta(hours=2))] == ["scheduled", "scheduled"]
        assert [run.result for run in drain(until=timedelta(hours=1))] == [1]
        assert journal.count("a 2") == 1

    def test_until_goes_through_time_outs(self, redis):
        tasks.order.delay("a", timeout=86_400)

        assert drain(until=timedelta(hours=23))[-1].state == "scheduled"
        assert drain(until=timedelta(hours=1))[-1].result == "refunded c1"
        assert "step_jobs" not in snapshot(redis)

    def test_a_failed_job_stays_behind_its_time_out(self):
        sometimes.delay()

        runs = drain(until=timedelta(days=1))

        assert [run.state for run in runs] == ["scheduled", "retrying", "succeeded"]

    @pytest.mark.parametrize(
        ("scene", "words"),
        [
            ("nan", "takes seconds or a timedelta, from 0 to ten years"),
            ("negative", "takes seconds or a timedelta"),
            ("text", "takes seconds or a timedelta"),
            ("no_name", "the name of an event is '', but has to be text"),
            ("in_atomic", r"sleep\(\) cannot be called within atomic\(\), here of database 'default'"),
            ("too_often", "a job sleeps and waits 2 times at the most"),
        ],
    )
    def test_what_cannot_be_waited_for_makes_a_dead_letter(self, db, monkeypatch, scene, words):
        monkeypatch.setattr(job_steps, "MAX_STEPS", 2)
        misuse.delay(scene)

        with pytest.raises(InvalidStep, match=words):
            drain()

    def test_a_task_with_exactly_once_cannot_wait(self, db):
        once.delay()

        with pytest.raises(InvalidStep, match=r"wait\('x'\) cannot be called in a task with exactly_once"):
            drain()

    def test_what_cannot_be_sent_is_refused(self):
        job = tasks.order.delay("a")

        with pytest.raises(ValueError, match="The name of an event is 7"):
            job.send(7)
        with pytest.raises(Unserializable):
            job.send("approved", object())
        with pytest.raises(PayloadTooLarge, match=r"The value of event 'approved' has 65,538 bytes"):
            job.send("approved", "x" * 65_536)


@task(takes_context=True, max_attempts=2)
def sometimes(context):
    try:
        context.wait("x", timeout=60)
    except EventTimeout:
        if context.attempt == 1:
            raise ValueError from None


SCENES = {
    "too_often": lambda context: [context.sleep(0) for _ in range(3)],
    "nan": lambda context: context.sleep(float("nan")),
    "negative": lambda context: context.sleep(-1),
    "text": lambda context: context.wait("x", timeout="1"),
    "no_name": lambda context: context.wait(""),
}


@task(takes_context=True)
def misuse(context, scene):
    if scene == "in_atomic":
        with transaction.atomic():
            context.sleep(1)
    else:
        SCENES[scene](context)


@task(takes_context=True, exactly_once=True)
def once(context):
    context.wait("x")


def test_in_a_plain_call_a_sleep_is_nothing_and_a_wait_times_out():
    context = JobContext()
    context.sleep(3600)

    with pytest.raises(EventTimeout, match="nobody can send it"):
        context.wait("approved")
