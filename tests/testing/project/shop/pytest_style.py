"""Tests in the manner of pytest."""

from datetime import timedelta
from unittest import mock

import pytest
from django.contrib.auth.models import Group

from django_rtq.exceptions import RedisNotAllowed
from django_rtq.testing import adrain, captured
from shop.tasks import add_group, add_second_group, invite, names, sign_up
from shop.tests import Captured, Drained, DrainedAndCommitted, Eager, EagerWithRetries, Guard  # noqa: F401


def test_the_redis_of_the_project_is_refused():
    with pytest.raises(RedisNotAllowed, match="rtq_captured"):
        add_group.delay("a")


def test_delay_can_be_replaced(monkeypatch):
    calls = []
    monkeypatch.setattr(add_group, "delay", calls.append)
    add_group.delay("a")
    with mock.patch.object(add_group, "delay_many") as delay_many:
        add_group.delay_many([])
    assert (calls, delay_many.call_count) == (["a"], 1)


def test_captured(rtq_captured):
    add_group.delay("a")
    rtq_captured.assert_enqueued(add_group, kwargs={"name": "a"}, times=1)
    with captured() as jobs:
        add_group.delay("b")
    assert (len(jobs), len(rtq_captured)) == (1, 1)


@pytest.mark.django_db
def test_on_commit(rtq_captured, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        sign_up("a")
    assert [job.args for job in rtq_captured] == [["a"]]


def test_eager(db, rtq_eager):
    assert add_group.delay("a").result == "a"
    assert names() == ["a"]
    assert len(rtq_eager) == 1


def test_eager_commits(transactional_db, rtq_eager):
    sign_up("a")
    assert names() == ["a"]


@pytest.mark.parametrize("number", range(5))
def test_drain(db, rtq_drain, number):
    assert rtq_drain() == []
    invite(f"a{number}")
    assert rtq_drain(until=timedelta(days=2)) == []
    assert [run.result for run in rtq_drain(until=timedelta(days=1))] == [f"a{number}"]
    assert names() == [f"a{number}"]


def test_drain_raises(db, rtq_drain):
    add_second_group.delay("b")
    with pytest.raises(LookupError):
        rtq_drain()
    Group.objects.create(name="first")
    (run,) = rtq_drain(until=60)
    assert (run.attempt, run.state) == (2, "succeeded")
    assert adrain
