"""enqueue() of django.tasks waits for the commit as well."""

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import transaction
from django.test import override_settings

from django_rtq import QueueFull
from django_rtq.backend.compat import task_enqueued
from tests.app import django_tasks as tasks
from tests.app import tasks as own_tasks
from tests.support.jobs import receiving

pytestmark = pytest.mark.usefixtures("transactional_db", "broker")
BACKEND = "django_rtq.backend.RTQBackend"


@pytest.fixture
def told():
    """The ids of results that the signal task_enqueued has told of."""
    ids = []
    with receiving(lambda task_result, **_: ids.append(task_result.id), task_enqueued):
        yield ids


@pytest.mark.parametrize("options", [{}, {"ENQUEUE_ON_COMMIT": True}])
def test_they_wait_by_default_and_the_signal_comes_after_the_commit(with_options, told, readers, options):
    with_options(**options)
    with transaction.atomic():
        result = tasks.add.enqueue(1, b=2)
        assert result.id
        assert result.enqueued_at
        assert told == []
        assert readers.search([("default", "queued")]).page().jobs == []

    assert told == [result.id]
    assert tasks.add.get_result(result.id) == result


@pytest.mark.parametrize("enqueue", [tasks.add.enqueue, async_to_sync(tasks.add.aenqueue), tasks.add.delay])
def test_they_are_sent_at_once_if_a_setting_or_an_option_says_so(with_options, readers, enqueue):
    with_options(ENQUEUE_ON_COMMIT=False)
    with transaction.atomic():
        enqueue(1)
        assert len(readers.search([("default", "queued")]).page().jobs) == 1


def test_enqueue_of_a_task_of_this_package_waits_and_delay_does_not(readers):
    with transaction.atomic():
        own_tasks.note.delay("a")
        own_tasks.note.enqueue("b")
        assert [job.args for job in readers.search([(own_tasks.note.queue, "queued")]).page().jobs] == [["a"]]
    assert len(readers.search([(own_tasks.note.queue, "queued")]).page().jobs) == 2


def test_without_autocommit_and_atomic_they_are_sent_at_once(readers):
    transaction.set_autocommit(False)
    try:
        tasks.add.enqueue(1)
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert len(readers.search([("default", "queued")]).page().jobs) == 1


def test_options_of_the_backend_and_of_a_copy(told):
    options = {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"on_commit": True}}
    with override_settings(TASKS={"default": options}), transaction.atomic():
        tasks.add.using(priority=1).enqueue(1)
        assert told == []
        tasks.add.using(on_commit=False).enqueue(1)
        assert len(told) == 1
    assert len(told) == 2


def test_delay_on_commit(readers):
    with transaction.atomic():
        job = tasks.add.delay_on_commit(1)
        async_to_sync(tasks.add.adelay_on_commit)(2)
        assert readers.search([("default", "queued")]).page().jobs == []
    assert job.state == "queued"
    assert len(readers.search([("default", "queued")]).page().jobs) == 2


def test_async_code(told):
    async def act():
        block = transaction.atomic()
        await sync_to_async(block.__enter__)()
        await tasks.add.using(on_commit=True).aenqueue(1)
        assert told == []
        await sync_to_async(block.__exit__)(None, None, None)

    async_to_sync(act)()
    assert len(told) == 1


def test_a_refused_job_is_not_told(told, readers, rtq):
    rtq.queues["default"].limit(max_waiting=1)
    task = tasks.add.using(on_commit=True)

    def act():
        with transaction.atomic():
            return task.enqueue(1), task.enqueue(2)

    with pytest.raises(QueueFull):
        act()

    (stored,) = readers.search([("default", "queued")]).page().jobs
    assert told == [stored.id]


class ToTheOther:
    """A router of a project whose database is not the default one."""

    def db_for_write(self, model, **hints):
        return "other"


@pytest.mark.parametrize("enqueue", [tasks.add.enqueue, async_to_sync(tasks.add.aenqueue), tasks.add.delay])
@pytest.mark.parametrize("has_router", [True, False])
def test_they_wait_for_the_commit_of_the_database_that_is_written(readers, other, enqueue, has_router):
    with override_settings(DATABASE_ROUTERS=[ToTheOther()] if has_router else []):
        with transaction.atomic(using=other):
            enqueue(1)
            assert readers.search([("default", "queued")]).page().jobs == []
        assert len(readers.search([("default", "queued")]).page().jobs) == 1
        with transaction.atomic(using=other):
            enqueue(1)
            transaction.set_rollback(True, using=other)
        assert len(readers.search([("default", "queued")]).page().jobs) == 1


def test_true_is_the_database_that_routers_name(with_options, readers, other):
    with_options(ENQUEUE_ON_COMMIT=True)
    with override_settings(DATABASE_ROUTERS=[ToTheOther()]), transaction.atomic(using=other):
        own_tasks.note.delay("waits")
        assert readers.search([("default", "queued")]).page().jobs == []
    assert len(readers.search([("default", "queued")]).page().jobs) == 1
