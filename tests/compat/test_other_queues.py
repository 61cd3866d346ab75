"""Names of other queues are refused with ours: as options of @task, using() and apply_async(), and as attributes."""

import asyncio
import copy
import pickle
import re

import pytest

import django_rtq
from django_rtq import JobHandle, every, task
from django_rtq.compat import other_queues
from django_rtq.core.tasks.task import OPTIONS
from django_rtq.exceptions import InvalidTask
from django_rtq.testing import captured
from tests.core.tasks.refusals import refusal


@task
def charge(order_id):
    return order_id


@pytest.mark.parametrize(
    ("call", "options", "cure"),
    [
        (task, {"queue": "mail"}, "@task does not take 'queue'. Write queue_name=…."),
        (task, {"bind": True}, "@task does not take 'bind'. Call current_job(), or use takes_context=True"),
        (task, {"max_retries": 3}, "Write max_attempts=…. It counts all runs: one more than the retries."),
        (task, {"soft_time_limit": 5}, "Write time_limit=…. It raises TimeLimitExceeded inside the job"),
        (task, {"countdown": 5}, "@task does not take 'countdown'. Use .using(run_after=…)."),
        (task.with_options, {"queue": "mail"}, "with_options() does not take 'queue'. Write queue_name=…."),
        (task.with_options, {"actor_name": "x"}, "with_options() does not take 'actor_name'. Use @task(name=…)."),
        (charge.using, {"countdown": 5}, "Write run_after=…."),
        (charge.using, {"autoretry_for": OSError}, "Use @task(retry_on=…)."),
        (charge.using, {"job_timeout": 5}, "Write time_limit=…."),  # RQ
        (charge.using, {"depends_on": 5}, "Use a workflow: with workflow("),
        (task, {"retries": 3}, "Write max_attempts=…."),  # huey
        (charge.using, {"delay": 5}, "Write run_after=…. Times are in seconds."),
        (task, {"max_age": 60_000}, "Write expires=…. Times are in seconds."),  # dramatiq
        (charge.apply_async, {"soft_time_limit": 5}, "Write time_limit=…. It raises TimeLimitExceeded"),
        (charge.apply_async, {"ignore_result": True}, "Use .using(result_ttl=0)."),
    ],
)
def test_an_option_of_another_queue_is_refused_with_ours(call, options, cure):
    assert cure in refusal(call, **options)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("s", "There are no signatures: pass the task and its arguments to where delay() is called."),
        ("apply", "Call the task to run it here: charge(…)."),
        ("request", "Call current_job()"),
        ("revoke", "To cancel one job: Use the handle"),
        ("send", "Use delay()."),
    ],
)
def test_a_method_of_another_queue_is_missing_with_ours(name, cure):
    with pytest.raises(AttributeError) as caught:
        getattr(charge, name)
    assert str(caught.value).startswith(f"{charge.name} has no {name}. {cure}")
    assert not hasattr(charge, name)
    assert getattr(charge, name, 5) == 5


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("status", "Read `state`"),
        ("ready", "It is over when `state.is_final` is true."),
        ("wait", "Use get(timeout=…)"),
        ("task_id", "Its id is `id`."),
    ],
)
def test_a_handle_tells_what_the_results_of_other_queues_are_here(name, cure):
    handle = JobHandle("j1", "default")
    with pytest.raises(AttributeError) as caught:
        getattr(handle, name)
    assert str(caught.value).startswith(f"JobHandle has no {name}. ")
    assert cure in str(caught.value)
    assert copy.copy(handle) == handle
    assert pickle.loads(pickle.dumps(handle)) == handle


def test_what_delay_returns_is_not_awaited():
    async def wrong():
        await JobHandle("j1", "default")

    with pytest.raises(TypeError, match=re.escape("job = await task.adelay(…)")):
        asyncio.run(wrong())


def test_the_schedule_of_a_task_is_no_method():
    with pytest.raises(TypeError, match=re.escape("use using(run_after=…).delay(…)")):
        charge.schedule((1,), delay=5)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("job", "Import `task`, and write @task."),
        ("enqueue", "call its delay(). A function is made a task by @task."),
        ("crontab", "Import `cron` or `every`"),
    ],
)
def test_what_other_packages_export_is_missing_with_ours(name, cure):
    with pytest.raises(ImportError) as caught:
        exec(f"from django_rtq import {name}")
    assert str(caught.value).startswith(f"django_rtq has no {name}. ")
    assert cure in str(caught.value)


def test_a_slip_is_told_with_the_name_that_was_meant():
    assert "@task does not take 'max_attempt'. Did you mean max_attempts? It takes: " in refusal(task, max_attempt=3)
    assert "unknown option 'weeks'. It takes: seconds, minutes, hours, days" in refusal(every, weeks=1)
    assert "unknown option 'minute'. Did you mean minutes?" in refusal(every, minute=1)


def test_a_job_that_would_never_run_is_refused():
    with captured(), pytest.raises(InvalidTask, match="expires is -1, but has to be"):
        charge.using(expires=-1).delay(1)


def test_any_other_attribute_is_missing_as_always():
    with pytest.raises(AttributeError, match="'Task' object has no attribute 'dealy'") as caught:
        charge.dealy  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("dealy", charge)
    assert copy.copy(charge).name == charge.name


def test_the_table_names_nothing_that_there_is():
    names = {*other_queues._RENAMED, *other_queues.INSTEAD}
    assert not names & OPTIONS.keys()
    assert not [name for name in other_queues._METHODS if hasattr(charge, name)]
    assert not [name for name in other_queues.OF_HANDLES if hasattr(JobHandle("j1", "default"), name)]
    assert not other_queues.IMPORTED.keys() & set(django_rtq.__all__)
    assert not other_queues._RENAMED.keys() & other_queues.INSTEAD.keys()


def test_what_the_table_tells_to_write_exists():
    texts = [*other_queues._RENAMED.values(), *other_queues.INSTEAD.values(), *other_queues._METHODS.values()]
    for text in texts:
        for name in re.findall(r"\b(\w+)=", text):
            assert name in OPTIONS or name in ("cap", "jitter", "after"), text
    for text in other_queues._METHODS.values():
        for name in re.findall(r"\b([a-z_]+)\(", text):
            assert hasattr(charge, name) or hasattr(django_rtq, name) or name in ("add", "cancel"), text
