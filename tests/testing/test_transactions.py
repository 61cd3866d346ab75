"""Tests of projects: TestCase, captureOnCommitCallbacks(), captured(), eager()."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import transaction
from django.test import TestCase, override_settings

from django_rtq import task
from django_rtq.exceptions import JobNotFound
from django_rtq.models import OutboxJob
from django_rtq.testing import captured, eager
from tests.app import django_tasks


@task
def add_user(name):
    User.objects.create(username=name)
    return name


@task
def note(name):
    """A job that does nothing."""


class TestInATestCase(TestCase):
    def test_callbacks_send_jobs(self):
        with captured() as jobs, self.captureOnCommitCallbacks(execute=True) as callbacks:
            first = note.delay_on_commit("a")
            second = note.using(on_commit=True).delay("b")
            assert len(jobs) == 0
        assert [job.id for job in jobs] == [first.id, second.id]
        assert [repr(callback) for callback in callbacks] == ["<1 job(s) for queue default>"] * 2

    def test_jobs_of_django_tasks_wait_for_a_block_of_the_test_only(self):
        with captured() as jobs:
            django_tasks.add.enqueue(1)
            assert [job.args for job in jobs] == [[1]]
            with transaction.atomic():
                django_tasks.add.enqueue(2)
            assert len(jobs) == 1
            with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
                django_tasks.add.enqueue(3)
            assert [job.args for job in jobs] == [[1], [3]]

    def test_eager_runs_jobs_when_callbacks_run(self):
        with eager() as runs:
            with self.captureOnCommitCallbacks(execute=True):
                job = add_user.delay_on_commit("a")
                assert len(runs) == 0
            assert len(runs) == 1
        assert job.result == "a"
        assert User.objects.exists()

    def test_the_handle_of_a_job_that_was_never_sent(self):
        with eager():
            job = add_user.delay_on_commit("a")
            with pytest.raises(JobNotFound):
                job.refresh()

    @override_settings(RTQ={"ENQUEUE_ON_COMMIT": True})
    def test_the_setting(self):
        with captured() as jobs:
            note.delay("a")
            assert len(jobs) == 0
            with self.captureOnCommitCallbacks(execute=True):
                note.delay("b")
            assert len(jobs) == 1

    @override_settings(RTQ={"OUTBOX": True})
    def test_the_outbox(self):
        with captured() as jobs:
            with self.captureOnCommitCallbacks(execute=True):
                note.delay("a")
                assert OutboxJob.objects.count() == 1
                assert len(jobs) == 0
            assert len(jobs) == 1
            assert not OutboxJob.objects.exists()

    async def test_async_tests(self):
        with captured() as jobs:
            callbacks = self.captureOnCommitCallbacks(execute=True)
            await sync_to_async(callbacks.__enter__)()  # each thread has its own connections
            await note.adelay_on_commit("a")
            await note.using(on_commit=True).adelay("b")
            assert len(jobs) == 0
            await sync_to_async(callbacks.__exit__)(None, None, None)
            assert len(jobs) == 2
