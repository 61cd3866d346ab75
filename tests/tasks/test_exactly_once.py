"""exactly_once: how it is declared, what it does in the calling thread, and how its rows are deleted."""

import signal
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_rtq import JobState, task
from django_rtq.conf.config import Config
from django_rtq.exceptions import InvalidTask
from django_rtq.inspector.jobs.undo import new_token
from django_rtq.internal_tasks import delete_committed_jobs
from django_rtq.models import CommittedJob
from django_rtq.scheduler.registry import declared_schedules
from django_rtq.tasks import registry
from django_rtq.testing import drain, eager
from tests.app import journal, once_tasks


def pay(order):
    """A function to be made a task."""


async def apay(order):
    """A coroutine function."""


@pytest.fixture(autouse=True)
def _journal(tmp_path, monkeypatch):
    monkeypatch.setenv(journal.FILE, str(tmp_path / "journal"))


@pytest.fixture
def own_tasks(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {})


# -- how it is declared


@pytest.mark.parametrize("value", [False, True, "default"])
def test_it_is_a_flag_or_an_alias(own_tasks, value):
    assert task(exactly_once=value)(pay).exactly_once == ("default" if value else "")


@pytest.mark.parametrize("value", [1, None, ["default"]])
def test_other_values_are_refused(own_tasks, value):
    with pytest.raises(
        InvalidTask, match=r"pay: exactly_once is .* but has to be True, False or an alias of DATABASES"
    ):
        task(exactly_once=value)(pay)


def test_an_unknown_alias_is_refused(own_tasks):
    with pytest.raises(InvalidTask, match="pay: exactly_once is 'othr', but DATABASES has: default"):
        task(exactly_once="othr")(pay)


def test_a_database_without_autocommit_is_refused(own_tasks, monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "AUTOCOMMIT", False)
    with pytest.raises(InvalidTask, match="pay: exactly_once needs a database with AUTOCOMMIT"):
        task(exactly_once=True)(pay)


def test_a_coroutine_function_is_refused(own_tasks):
    with pytest.raises(InvalidTask, match="apay: exactly_once runs the function in a transaction, and Django has none"):
        task(exactly_once=True)(apay)


def test_it_cannot_be_changed_for_one_call():
    with pytest.raises(InvalidTask, match="does not take 'exactly_once'"):
        once_tasks.fail.using(exactly_once=False)


# -- in the calling thread


@pytest.fixture
def effects(database):
    """The names of effects in the database."""
    database.query(once_tasks.CREATE_TABLE)
    return lambda: [name for (name,) in database.query("SELECT name FROM effects ORDER BY name")]


def test_a_call_runs_the_function_alone(effects):
    once_tasks.effect("a")

    assert effects() == ["a"]
    assert not CommittedJob.objects.exists()


def test_a_job_costs_one_statement_more_than_its_transaction(effects):
    with CaptureQueriesContext(connection) as queries, eager():
        job = once_tasks.effect.delay("a")

    assert [query["sql"].split()[0] for query in queries] == ["BEGIN", "INSERT", "INSERT", "COMMIT"]
    (row,) = CommittedJob.objects.all()
    assert (row.job_id, row.queue) == (job.id, "once")
    assert abs(row.committed_at - timezone.now()) < timedelta(seconds=60)


def test_a_failure_in_eager_leaves_no_effect(effects):
    with eager(), pytest.raises(ValueError, match="a"):
        once_tasks.fail.delay("a", 1)

    assert effects() == []
    assert not CommittedJob.objects.exists()


@pytest.mark.django_db
def test_eager_works_inside_a_transaction():
    with connection.cursor() as cursor:
        cursor.execute(once_tasks.CREATE_TABLE)
    with eager(propagate=False) as runs, transaction.atomic():
        good, _ = once_tasks.effect.delay("a"), once_tasks.collide.using(max_attempts=1).delay("b")

    assert [run.state for run in runs] == [JobState.SUCCEEDED, JobState.DEAD]
    assert [row.job_id for row in CommittedJob.objects.all()] == [good.id]


def test_drain_settles_a_job_that_has_committed(broker, effects):
    job = once_tasks.effect.delay("a")
    CommittedJob.objects.create(job_id=job.id, queue="once", committed_at=timezone.now())
    (run,) = drain()

    assert (run.id, run.state, run.result) == (job.id, JobState.SUCCEEDED, None)
    assert effects() == []


def test_no_interrupt_comes_when_it_commits(effects):
    with eager(time_limits=True):
        job = watch_alarm.using(time_limit=60).delay()

    assert job.result is True
    assert left.pop() == 0


@task(exactly_once=True, queue_name=once_tasks.QUEUE)
def watch_alarm():
    """Whether an alarm is set; `left` gets the seconds left at the commit."""
    transaction.on_commit(lambda: left.append(signal.getitimer(signal.ITIMER_REAL)[0]))
    return signal.getitimer(signal.ITIMER_REAL)[0] > 0


left = []


# -- old rows


def commit(job_id, *, days, queue="once"):
    at = timezone.now() - timedelta(days=days)
    return CommittedJob.objects.create(job_id=job_id, queue=queue, committed_at=at)


def known():
    return sorted(CommittedJob.objects.values_list("job_id", flat=True))


def test_old_rows_are_deleted(broker, database):
    commit("old", days=8)
    commit("young", days=6)

    assert delete_committed_jobs("default") == 1
    assert known() == ["young"]


def test_the_age_is_a_setting(broker, database, settings):
    commit("old", days=2)
    settings.RTQ = {**settings.RTQ, "EXACTLY_ONCE_DAYS": 1.5}

    assert delete_committed_jobs("default") == 1


def test_the_rows_of_jobs_that_may_run_again_are_kept(broker, effects):
    dead = once_tasks.collide.using(max_attempts=1).delay("a")
    drain(raise_errors=False)
    queued = once_tasks.effect.delay("a")
    for job_id in (dead.id, queued.id, "gone"):
        commit(job_id, days=100)

    assert dead.state is JobState.DEAD
    assert delete_committed_jobs("default") == 1
    assert known() == sorted([dead.id, queued.id])
    assert not CommittedJob.objects.filter(committed_at__lt=timezone.now() - timedelta(days=1)).exists()


def test_the_row_of_a_job_that_was_moved_is_kept(broker, inspector, database):
    queued = once_tasks.effect.delay("a")
    commit(queued.id, days=100)
    inspector.job_mover.move(queued.id, "other")

    assert delete_committed_jobs("default") == 0


def test_the_row_of_a_job_that_can_be_restored_is_kept(broker, inspector, effects):
    dead = once_tasks.collide.using(max_attempts=1).delay("a")
    drain(raise_errors=False)
    commit(dead.id, days=100, queue="once")
    assert inspector.discard("once", [dead.id], undo=new_token("discard")) == [dead.id]

    assert delete_committed_jobs("default") == 0


def test_a_requeued_dead_letter_that_has_committed_is_settled(broker, inspector, effects):
    """As after a commit whose reply was lost."""
    dead = once_tasks.collide.using(max_attempts=1).delay("a")
    drain(raise_errors=False)
    commit(dead.id, days=0)
    inspector.requeue("once", [dead.id])
    drain()

    assert dead.state is JobState.SUCCEEDED
    assert effects() == []


def test_rows_are_deleted_step_by_step(broker, database, monkeypatch):
    monkeypatch.setattr("django_rtq.internal_tasks.ROWS_AT_ONCE", 2)
    for number in range(5):
        commit(f"old-{number}", days=9)
    stored = once_tasks.effect.delay("a")
    commit(stored.id, days=9)

    assert delete_committed_jobs("default") == 5
    assert known() == [stored.id]


def test_a_schedule_deletes_them_in_the_queue_of_each_task(own_tasks):
    task(exactly_once=True, queue_name="a")(pay)
    task(queue_name="b")(lambda_free)

    (entry,) = declared_schedules(Config())
    assert (entry.task.name, entry.task.queue) == ("django_rtq.internal_tasks.delete_committed_jobs", "a")
    assert (entry.schedule.every_ms, entry.schedule.args) == (3_600_000, ["default"])
    assert entry.schedule.overlap == "skip"


def lambda_free():
    """A function to be made a task without it."""


def test_nothing_is_scheduled_without_such_tasks(own_tasks):
    task(pay)
    assert declared_schedules(Config()) == []
