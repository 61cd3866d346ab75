"""exactly_once: how it is declared, what it does in the calling thread, and how its rows are deleted."""

import signal
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_rtq import JobState, task, workflow
from django_rtq.core.conf.config import Config
from django_rtq.core.extension import parts
from django_rtq.core.scheduler.registry import declared_schedules
from django_rtq.databases.exactly_once import delete_committed_jobs
from django_rtq.exceptions import Bury, InvalidTask
from django_rtq.extensions import EXTENSIONS
from django_rtq.models import CommittedJob
from django_rtq.testing import drain, eager
from tests.app import journal, once_tasks
from tests.support.snapshots import live_jobs
from tests.support.waiting import start_thread


def pay(order):
    """A function to be made a task."""


async def apay(order):
    """A coroutine function."""


@pytest.fixture(autouse=True)
def _journal(tmp_path, monkeypatch):
    monkeypatch.setenv(journal.FILE, str(tmp_path / "journal"))


# -- how it is declared


@pytest.mark.parametrize("value", [False, True, "default"])
def test_it_is_a_flag_or_an_alias(no_tasks, value):
    assert task(exactly_once=value)(pay).exactly_once == ("default" if value else "")


@pytest.mark.parametrize(
    ("func", "value", "text"),
    [
        *(
            (pay, value, "pay: exactly_once is .* True, False, or the alias of a database in DATABASES")
            for value in (1, [], None)
        ),
        (pay, "othr", "pay: exactly_once is 'othr', but has to be True, False, or the alias .* It has: default"),
        (apay, True, "apay: exactly_once runs the function in a transaction, and Django has none"),
    ],
)
def test_what_makes_no_sense_is_refused(no_tasks, func, value, text):
    with pytest.raises(InvalidTask, match=text):
        task(exactly_once=value)(func)


def test_a_database_without_autocommit_is_refused(no_tasks, monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "AUTOCOMMIT", False)
    with pytest.raises(InvalidTask, match="pay: exactly_once needs a database with AUTOCOMMIT"):
        task(exactly_once=True)(pay)


def test_it_cannot_be_changed_for_one_call():
    with pytest.raises(InvalidTask, match="does not take 'exactly_once'"):
        once_tasks.fail.using(exactly_once=False)


# -- in the calling thread


@pytest.fixture
def effects(database):
    database.query(once_tasks.CREATE_TABLE)
    return lambda: [name for (name,) in database.query("SELECT name FROM effects ORDER BY name")]


def test_a_call_runs_the_function_alone(effects):
    once_tasks.effect("a")

    assert effects() == ["a"]
    assert not CommittedJob.objects.exists()


def test_a_job_costs_two_statements_more_than_its_transaction(effects):
    with CaptureQueriesContext(connection) as queries, eager():
        job = once_tasks.effect.delay("a")

    assert [query["sql"].split()[0] for query in queries] == ["BEGIN", "INSERT", "INSERT", "UPDATE", "COMMIT"]
    (row,) = CommittedJob.objects.all()
    assert (row.job_id, row.queue) == (job.id, "once")
    assert abs(row.committed_at - timezone.now()) < timedelta(seconds=60)


@pytest.mark.django_db
def test_eager_works_inside_a_transaction():
    with connection.cursor() as cursor:
        cursor.execute(once_tasks.CREATE_TABLE)
    with eager(propagate=False) as runs, transaction.atomic():
        good, _ = once_tasks.effect.delay("a"), once_tasks.collide.using(max_attempts=1).delay("b")

    assert [run.state for run in runs] == [JobState.SUCCEEDED, JobState.DEAD]
    assert [row.job_id for row in CommittedJob.objects.all()] == [good.id]


# -- a run that succeeds has committed


@task(exactly_once=True, queue_name=once_tasks.QUEUE, takes_context=True)
def write_and(context, way):
    """Writes an effect, and breaks the transaction in one of these ways."""
    once_tasks.write_effect(way)
    WAYS[way](context)
    return "written"


def catch_an_error_of_the_orm(context):
    with suppress(IntegrityError):
        CommittedJob.objects.create(job_id=context.job_id, queue="", committed_at=timezone.now())


def catch_an_error_of_a_statement(context):
    with suppress(IntegrityError):
        once_tasks.write_effect(None)


def catch_an_error_of_an_inner_block(context):
    with suppress(IntegrityError), transaction.atomic():
        once_tasks.write_effect(None)


def close_connections(context):
    connections.close_all()


def roll_back(context):
    transaction.set_rollback(True)


def be_the_victim_of_a_deadlock(context):
    holds_second = threading.Event()

    def lock_the_other_way_round():
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                for _ in range(50):
                    once_tasks.write_effect("other")  # the server rolls back the one that has written less
                cursor.execute("UPDATE django_rtq_committedjob SET queue = 'x' WHERE job_id = 'second'")
                holds_second.set()
                cursor.execute("UPDATE django_rtq_committedjob SET queue = 'x' WHERE job_id = 'first'")
        finally:
            connection.close()

    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_rtq_committedjob SET queue = 'y' WHERE job_id = 'first'")
        other = start_thread(lock_the_other_way_round)
        holds_second.wait()
        with suppress(OperationalError):
            cursor.execute("UPDATE django_rtq_committedjob SET queue = 'y' WHERE job_id = 'second'")
        other.join()


WAYS = {way.__name__: way for way in (
    catch_an_error_of_the_orm, catch_an_error_of_a_statement, catch_an_error_of_an_inner_block, close_connections,
    roll_back, be_the_victim_of_a_deadlock,
)}  # fmt: skip


def run_and_break(way):
    with eager(propagate=False) as runs:
        write_and.using(max_attempts=1).delay(way.__name__)
    return runs[0]


@pytest.mark.parametrize("way", [catch_an_error_of_the_orm, close_connections, roll_back])
def test_a_job_whose_transaction_was_broken_fails(effects, way):
    job = run_and_break(way)

    assert job.state is JobState.DEAD
    assert "what it has written cannot be committed" in str(job.error)
    assert 'with transaction.atomic(using="default")' in str(job.error)
    assert effects() == []
    assert not CommittedJob.objects.exists()


def test_a_caught_error_of_a_statement_fails_the_job_if_it_aborts_the_transaction(database, effects):
    job = run_and_break(catch_an_error_of_a_statement)

    is_aborted = database.vendor == "postgresql"  # others go on
    assert job.state is (JobState.DEAD if is_aborted else JobState.SUCCEEDED)
    assert effects() == ([] if is_aborted else ["catch_an_error_of_a_statement"])


def test_a_caught_error_of_an_inner_block_does_not_fail_the_job(effects):
    job = run_and_break(catch_an_error_of_an_inner_block)

    assert job.result == "written"
    assert effects() == ["catch_an_error_of_an_inner_block"]


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_the_victim_of_a_deadlock_fails(effects):
    commit("first", days=0)
    commit("second", days=0)
    job = run_and_break(be_the_victim_of_a_deadlock)

    assert job.state is JobState.DEAD
    assert "what it has written cannot be committed" in str(job.error)
    assert set(effects()) == {"other"}
    assert known() == ["first", "second"]


def test_the_next_run_may_succeed(broker, effects, monkeypatch):
    job = write_and.using(max_attempts=2).delay("roll_back")
    drain(raise_errors=False)
    assert job.state is JobState.RETRYING
    monkeypatch.setitem(WAYS, "roll_back", bool)
    drain(until=timedelta(days=1))

    assert job.result == "written"
    assert effects() == ["roll_back"]


@pytest.mark.parametrize("result", ["x" * 2000, object()])
def test_a_result_that_cannot_be_stored_is_refused_before_the_commit(effects, settings, result):
    settings.RTQ = {**settings.RTQ, "MAX_PAYLOAD_BYTES": 1000}
    results.append(result)
    with eager(propagate=False) as runs:
        give.delay()
    (job,) = runs

    assert job.state is JobState.DEAD
    assert "the result" in str(job.error)
    assert effects() == []


@task(exactly_once=True, queue_name=once_tasks.QUEUE)
def give():
    once_tasks.write_effect("given")
    return results.pop()


results = []


def test_a_missing_column_is_named_with_the_command_that_makes_it(database, effects):
    database.query("ALTER TABLE django_rtq_committedjob DROP COLUMN result")
    job = run_and_break(catch_an_error_of_an_inner_block)

    assert job.state is JobState.DEAD
    assert isinstance(job.error, DatabaseError)
    assert str(job.error).endswith(". Run: manage.py migrate django_rtq")


# -- a run that has committed succeeds


@task(exactly_once=True, queue_name=once_tasks.QUEUE, max_attempts=1)
def write_with_hooks(*names):
    for name in names:
        transaction.on_commit(partial(hook, name))
    once_tasks.write_effect("a")
    return "the receipt"


def hook(name):
    if name == "bad":
        raise SystemExit("a hook has failed")
    called.append(name)


called = []


def test_a_failed_hook_of_on_commit_is_logged(effects, caplog):
    called.clear()
    with eager():
        job = write_with_hooks.delay("first", "bad", "second")

    assert (job.state, job.result) == (JobState.SUCCEEDED, "the receipt")
    assert effects() == ["a"]
    assert called == ["first", "second"]
    (line,) = [line for line in caplog.records if line.levelname == "ERROR"]
    assert f"job {job.id} has committed, so it has succeeded. Its hook" in line.getMessage()
    assert "a hook has failed" in line.getMessage()
    assert line.job_id == job.id
    assert line.exc_info[0] is SystemExit


def test_jobs_of_hooks_are_sent_although_another_hook_fails(broker, effects):
    write_and_enqueue.delay()
    runs = drain(raise_errors=False)

    assert [run.task for run in runs] == [write_and_enqueue.name] + [once_tasks.effect.name] * 2
    assert [run.state for run in runs] == [JobState.SUCCEEDED] * 3


@task(exactly_once=True, queue_name=once_tasks.QUEUE, max_attempts=1)
def write_and_enqueue():
    once_tasks.effect.using(queue_name="a").delay_on_commit("child")
    transaction.on_commit(partial(hook, "bad"))
    once_tasks.effect.using(queue_name="b").delay_on_commit("child")


def raise_afterwards(run):
    def around(job):
        run(job)
        raise LookupError("after the commit")

    return around


def return_an_object(run):
    def around(job):
        run(job)
        return object()

    return around


@pytest.mark.parametrize("middleware", [raise_afterwards, return_an_object])
def test_middleware_that_fails_after_the_commit_is_logged(effects, caplog, settings, middleware):
    settings.RTQ = {**settings.RTQ, "MIDDLEWARE": [f"{__name__}.{middleware.__name__}"]}
    with eager():
        job = write_with_hooks.delay()

    assert (job.state, job.result) == (JobState.SUCCEEDED, "the receipt")
    assert f"job {job.id} has committed, so it has succeeded. After the commit it raised:" in caplog.text
    (line,) = [line for line in caplog.records if line.levelname == "ERROR"]
    assert line.job_id == job.id


# -- the result of the first run


def run_again(task, *args, **options):
    """A job that has committed, as if its process had died before Redis knew."""
    with eager():
        first = task.using(**options).delay(*args)
    again = task.using(**options).delay(*args)
    CommittedJob.objects.filter(pk=first.id).update(job_id=again.id)
    (run,) = drain()
    assert run.id == again.id
    return again


@pytest.mark.parametrize("result", [None, 0, "", "é" * 10, {"a": [1, None]}])
def test_the_second_run_has_the_result_of_the_first(broker, effects, caplog, result):
    caplog.set_level("INFO", "django_rtq")
    results.append(result)
    job = run_again(give)

    assert (job.state, job.result) == (JobState.SUCCEEDED, result)
    assert effects() == ["given"]
    assert caplog.text.count("has committed in an earlier run: its function was not called again\n") == 1


@pytest.mark.parametrize(("limit", "is_kept"), [(22, True), (21, False), (0, False)])
def test_a_large_result_is_not_kept(broker, effects, monkeypatch, caplog, limit, is_kept):
    caplog.set_level("INFO", "django_rtq")
    config = replace(broker.config, exactly_once_max_result_bytes=limit)
    monkeypatch.setattr("django_rtq.databases.exactly_once.get_config", lambda: config)
    results.append("é" * 10)  # 22 bytes of JSON
    job = run_again(give)

    assert job.result == ("é" * 10 if is_kept else None)
    assert ('RTQ["EXACTLY_ONCE_MAX_RESULT_BYTES"]' in caplog.text) is not is_kept


def test_a_result_without_a_time_to_live_is_not_kept(broker, effects):
    results.append("x")
    run_again(give, result_ttl=0)

    assert CommittedJob.objects.get().result == ""


@task(queue_name=once_tasks.QUEUE)
def take(result):
    taken.append(result)


taken = []


@pytest.fixture
def member(redis, broker, effects):
    """The id of a job whose result the next step of its workflow takes. It has no time to live."""
    taken.clear()
    with workflow("flow") as flow:
        flow.add(take, flow.add(give.using(result_ttl=0)).result)
    return live_jobs(redis).popitem()[0]


def test_a_result_that_another_step_takes_is_kept(broker, member, monkeypatch):
    """Whatever RESULT_TTL and EXACTLY_ONCE_MAX_RESULT_BYTES say."""
    config = replace(broker.config, exactly_once_max_result_bytes=0)
    monkeypatch.setattr("django_rtq.databases.exactly_once.get_config", lambda: config)
    results.append("x")
    drain()

    assert CommittedJob.objects.get(pk=member).result == '"x"'
    assert taken == ["x"]


def test_the_second_run_passes_the_result_of_the_first_on(member):
    CommittedJob.objects.create(job_id=member, queue="once", committed_at=timezone.now(), result='"x"')
    drain()

    assert taken == ["x"]


def test_one_that_another_step_takes_and_was_not_kept_is_no_none(member):
    CommittedJob.objects.create(job_id=member, queue="once", committed_at=timezone.now(), result="")
    with pytest.raises(Bury, match="was not kept in the database"):
        drain()

    assert taken == []


def test_one_that_is_too_large_for_another_step_leaves_no_effect(broker, member, effects, monkeypatch):
    config = replace(broker.config, max_step_result_bytes=5)
    monkeypatch.setattr("django_rtq.databases.exactly_once.get_config", lambda: config)
    results.append("xxxx")
    with pytest.raises(Bury, match="MAX_STEP_RESULT_BYTES"):
        drain()

    assert effects() == []


def test_a_row_without_a_result_says_that_none_was_kept(broker, effects, caplog):
    caplog.set_level("INFO", "django_rtq")
    job = once_tasks.effect.delay("a")
    CommittedJob.objects.create(job_id=job.id, queue="once", committed_at=timezone.now(), result=None)
    drain()

    assert (job.state, job.result) == (JobState.SUCCEEDED, None)
    assert "its result is None, because the first one was not kept" in caplog.text


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


@pytest.mark.parametrize(("setting", "old", "young"), [({}, 8, 6), ({"EXACTLY_ONCE_DAYS": 1.5}, 2, 1)])
def test_old_rows_are_deleted(broker, database, settings, setting, old, young):
    settings.RTQ = {**settings.RTQ, **setting}
    commit("old", days=old)
    commit("young", days=young)

    assert delete_committed_jobs("default") == 1
    assert known() == ["young"]


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


def test_rows_are_deleted_step_by_step(broker, database, monkeypatch):
    monkeypatch.setattr("django_rtq.databases.exactly_once.ROWS_AT_ONCE", 2)
    for number in range(5):
        commit(f"old-{number}", days=9)
    stored = once_tasks.effect.delay("a")
    commit(stored.id, days=9)

    assert delete_committed_jobs("default") == 5
    assert known() == [stored.id]


def test_a_schedule_deletes_them_in_the_queue_of_each_task(no_tasks):
    task(exactly_once=True, queue_name="a")(pay)
    task(queue_name="b")(apay)

    (entry,) = declared_schedules(Config())
    assert (entry.task.name, entry.task.queue) == ("django_rtq.internal_tasks.delete_committed_jobs", "a")
    assert (entry.schedule.every_ms, entry.schedule.args) == (3_600_000, ["default"])
    assert entry.schedule.overlap == "skip"


def test_the_schedule_needs_no_other_app(no_tasks, monkeypatch):
    brought = [extension for extension in EXTENSIONS if extension.exactly_once]
    monkeypatch.setattr("django_rtq.extensions.EXTENSIONS", brought)
    parts.cache_clear()
    task(exactly_once=True, queue_name="a")(pay)

    (entry,) = declared_schedules(Config())
    assert entry.task.name == "django_rtq.internal_tasks.delete_committed_jobs"
    parts.cache_clear()
