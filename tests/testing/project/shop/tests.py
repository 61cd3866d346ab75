"""Tests in the manner of unittest and Django."""

from datetime import timedelta

from django.contrib.auth.models import Group
from django.test import SimpleTestCase, TestCase, TransactionTestCase

from django_rtq.exceptions import RedisNotAllowed
from django_rtq.testing import CapturedMixin, DrainMixin, EagerMixin, adrain, captured, drain, eager, private_redis
from shop.tasks import aadd_group, add_group, add_second_group, invite, names, sign_up


class Guard(SimpleTestCase):
    def test_the_redis_of_the_project_is_refused(self):
        with self.assertRaisesMessage(RedisNotAllowed, "django_rtq.testing"):
            add_group.delay("a")
        with self.assertRaises(RedisNotAllowed):
            drain()


class Captured(CapturedMixin, TestCase):
    @classmethod
    def setUpTestData(cls):
        add_group.delay("of the class")
        Group.objects.create(name="of the class")

    def test_jobs_are_collected(self):
        self.jobs.assert_not_enqueued()
        with self.captureOnCommitCallbacks(execute=True):
            sign_up("a")
            self.assertEqual(len(self.jobs), 0)
        self.jobs.assert_enqueued(add_group, args=("a",), client="a", times=1)
        self.assertEqual(names(), ["of the class"])

    def test_each_test_begins_empty(self):
        self.assertEqual(len(self.jobs), 0)
        add_group.delay("b")

    async def test_async_tests(self):
        await add_group.adelay("c")
        self.jobs.assert_enqueued(add_group, args=("c",))


class Eager(EagerMixin, TestCase):
    @classmethod
    def setUpTestData(cls):
        add_group.delay("of the class")

    def setUp(self):
        add_group.delay("of set-up")

    def test_jobs_run_in_the_transaction_of_the_test(self):
        with self.captureOnCommitCallbacks(execute=True):
            sign_up("a")
        self.assertEqual(names(), ["a", "of set-up", "of the class"])
        self.assertEqual([run.result for run in self.jobs], ["of set-up", "a"])

    async def test_async_tests(self):
        await add_group.adelay("b")
        await aadd_group.adelay("c")
        self.assertEqual(await Group.objects.acount(), 4)

    def test_nothing_of_other_tests_is_left(self):
        self.assertEqual(names(), ["of set-up", "of the class"])


class EagerWithRetries(EagerMixin, TransactionTestCase):
    eager_options = {"retries": True, "propagate": False}

    def test_retries(self):
        self.assertEqual(add_second_group.delay("b").state, "dead")
        self.assertEqual([run.attempt for run in self.jobs], [1, 2, 3])
        self.assertEqual(names(), [])


class CapturedAmongThem(CapturedMixin, EagerWithRetries):
    def test_retries(self):
        add_second_group.delay("b")
        self.jobs.assert_enqueued(add_second_group)


class Drained(DrainMixin, TestCase):
    def test_jobs_run_in_the_transaction_of_the_test(self):
        add_second_group.delay("b")
        invite("a")
        with self.assertRaises(LookupError):
            self.drain()
        Group.objects.create(name="first")
        runs = self.drain(until=timedelta(days=3))
        self.assertEqual([run.state for run in runs], ["succeeded", "succeeded"])
        self.assertEqual(names(), ["a", "b", "first"])

    def test_nothing_of_other_tests_is_left(self):
        self.assertEqual((self.drain(), names()), ([], []))

    async def test_async_tests(self):
        await aadd_group.adelay("c")
        await adrain()
        self.assertEqual(await Group.objects.acount(), 1)


class DrainedAndCommitted(DrainMixin, TransactionTestCase):
    def test_jobs_commit(self):
        sign_up("a")
        self.drain()
        self.assertEqual(names(), ["a"])


class Decorated(TestCase):
    jobs = captured()

    @jobs
    def test_captured(self):
        add_group.delay("a")
        self.jobs.assert_enqueued(add_group)

    @eager()
    async def test_eager(self):
        await add_group.adelay("a")
        self.assertEqual(await Group.objects.acount(), 1)

    @private_redis()
    def test_drain(self):
        add_group.delay("a")
        self.assertEqual([run.result for run in drain()], ["a"])


@eager()
class DecoratedClass(TestCase):
    def setUp(self):
        add_group.delay("a")

    def test_eager(self):
        self.assertEqual(names(), ["a"])
