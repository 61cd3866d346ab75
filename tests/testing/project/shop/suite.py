"""Tests that say nothing of jobs themselves: RTQ["TEST"] does. In each of them there are no jobs of others."""

import threading
import unittest

from django.conf import settings
from django.contrib.auth.models import Group
from django.test import SimpleTestCase, TestCase, TransactionTestCase, override_settings

from django_rtq.console.reading.readers import readers_of
from django_rtq.exceptions import JobNotFound, RedisNotAllowed, WrongState
from django_rtq.testing import adrain, captured, drain, eager, private_redis
from shop.tasks import aadd_group, add_group, count, idle, names, sign_up

MODE = settings.RTQ["TEST"]
SEES = {"eager": ["a"], "captured": [], "drain": []}[MODE]  # the groups right after delay() for "a"
of_other_tests = []


class NoJobsOfOthers:
    """Leaves jobs behind, and looks for those of other tests."""

    def leave_a_job(self):
        for job in of_other_tests:
            with self.assertRaises(JobNotFound):
                job.refresh()
        job = count.delay()
        self.assertFalse(job.duplicate)
        self.assertEqual(job.state, "succeeded" if MODE == "eager" else "queued")
        of_other_tests[:] = [job]

    def test_one(self):
        self.leave_a_job()

    def test_two(self):
        self.leave_a_job()

    def test_three(self):
        self.leave_a_job()


class InATransaction(NoJobsOfOthers, TestCase):
    @classmethod
    def setUpTestData(cls):
        of_other_tests.append(count.delay())

    def test_what_delay_does(self):
        add_group.delay("a")
        self.assertEqual(names(), SEES)
        if MODE == "drain":
            self.assertEqual([run.result for run in drain()], ["a"])
            self.assertEqual(names(), ["a"])

    async def test_async(self):
        await aadd_group.adelay("a")
        if MODE == "drain":
            await adrain()
        self.assertEqual(await Group.objects.acount(), 0 if MODE == "captured" else 1)

    def test_jobs_wait_for_the_commit(self):
        with self.captureOnCommitCallbacks(execute=True):
            sign_up("a")
            self.assertEqual(names(), [])
        self.assertEqual(names(), SEES)

    def test_a_test_may_say_it_itself(self):
        with captured() as jobs:
            add_group.delay("a")
        jobs.assert_enqueued(add_group, args=("a",), times=1)
        with eager() as runs:
            add_group.delay("b")
        self.assertEqual([run.result for run in runs], ["b"])
        with private_redis():
            self.assertEqual(drain(), [])
            add_group.delay("c")
            self.assertEqual([run.result for run in drain()], ["c"])
        add_group.delay("a")
        self.assertEqual(names(), [*SEES, "b", "c"])

    def test_other_settings_change_nothing(self):
        job = count.delay()
        with override_settings(RTQ={**settings.RTQ, "MAX_PAYLOAD_BYTES": 100}):
            self.assertEqual(job.refresh().id, job.id)
            self.assertEqual(count.delay().duplicate, MODE != "eager")

    def test_another_mode_for_some_tests(self):
        with override_settings(RTQ={**settings.RTQ, "TEST": "eager"}):
            add_group.delay("a")
        with override_settings(RTQ={**settings.RTQ, "TEST": "captured"}):
            job = add_group.delay("b")
            with self.assertRaises(WrongState):
                job.get()
        self.assertEqual(names(), ["a"])

    def test_what_needs_redis(self):
        if MODE == "drain":
            self.assertEqual(readers_of().queues.names(), [])
        else:
            with self.assertRaisesMessage(RedisNotAllowed, f'RTQ["TEST"] = "{MODE}" is active'):
                drain()


class Committing(NoJobsOfOthers, TransactionTestCase):
    def test_what_delay_does(self):
        sign_up("a")
        self.assertEqual(names(), SEES)


class WithoutDatabase(SimpleTestCase):
    def test_one(self):
        self.assertFalse(add_group.delay_many([]))


class OfPython(unittest.TestCase):
    def test_threads_have_the_same_jobs(self):
        handles = []
        threads = [threading.Thread(target=lambda: handles.append(idle.delay())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([handle.id for handle in handles], [handle.refresh().id for handle in handles])
