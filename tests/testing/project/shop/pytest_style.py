"""Tests in the manner of pytest."""

from datetime import timedelta

import pytest

from django_rtq.exceptions import RedisNotAllowed
from django_rtq.testing import captured
from shop.tasks import add_group, invite, names
from shop.tests import Captured, Drained, DrainedAndCommitted, Eager, EagerWithRetries, Guard  # noqa: F401


def test_the_redis_of_the_project_is_refused():
    with pytest.raises(RedisNotAllowed, match="rtq_captured"):
        add_group.delay("a")


def test_captured(rtq_captured):
    add_group.delay("a")
    rtq_captured.assert_enqueued(add_group, kwargs={"name": "a"}, times=1)
    with captured() as jobs:
        add_group.delay("b")
    assert (len(jobs), len(rtq_captured)) == (1, 1)


def test_eager(db, rtq_eager):
    assert add_group.delay("a").result == "a"
    assert names() == ["a"]
    assert len(rtq_eager) == 1


@pytest.mark.parametrize("number", range(5))
def test_drain(db, rtq_drain, number):
    assert rtq_drain() == []
    invite(f"a{number}")
    assert rtq_drain(until=timedelta(days=2)) == []
    assert [run.result for run in rtq_drain(until=timedelta(days=1))] == [f"a{number}"]
    assert names() == [f"a{number}"]
