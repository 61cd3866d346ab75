"""drain() runs jobs in the transaction of the test, and in its thread."""

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import TestCase, TransactionTestCase

from django_rtq.testing import drain, private_redis
from tests.testing.test_eager import add_user

pytest.importorskip("fakeredis")
pytest.importorskip("lupa")


class TestInATransaction(TestCase):
    @private_redis()
    def test_jobs_see_and_change_what_the_test_does(self):
        handle = add_user.delay("a")
        drain()
        assert handle.result == [True, threading.get_ident()]
        assert connection.in_atomic_block
        assert User.objects.get().username == "a"


@private_redis()
class TestWithoutATransaction(TransactionTestCase):
    def test_jobs_commit(self):
        add_user.delay("a")
        drain()
        assert User.objects.exists()
