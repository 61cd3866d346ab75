"""Jobs that are enqueued together keep the order of their calls, also more of them than one round trip takes."""

import asyncio
import time
from importlib import import_module

import pytest

from django_rtq import task
from django_rtq.core.broker import enqueue_calls
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.scripts import AT_ONCE, MAINTAIN_AT_ONCE
from tests.support.jobs import QUEUE
from tests.support.single_steps import promote

TOGETHER = 50


@task(client="acme")
def step(number):
    """A job of one client."""


@task(client="acme", unique=True)
def once(number):
    """Another, of which there is one for each number."""


def delay_many(work=step, many=TOGETHER):
    return [job.id for job in work.delay_many([((number,), {}) for number in range(many)])]


def lane(redis, queue=QUEUE):
    """The ids in the lane of the client, in order."""
    return [job_id.decode() for job_id in redis.lrange(get_broker().keys.of(queue).lane + b"0:acme", 0, -1)]


# -- together


@pytest.mark.parametrize("work", [step, once])
def test_delayed_jobs_of_one_time(redis, broker, work):
    ids, keys = delay_many(work.using(run_after=60)), broker.keys.of(QUEUE)
    for key in (keys.scheduled, keys.scheduled_by_client + b":acme"):
        redis.zadd(key, dict.fromkeys(ids, 1))
    redis.zadd(keys.scheduled_by_client, {"acme": 1})

    promote(broker, QUEUE)

    assert lane(redis) == ids


# -- more than one round trip takes


@pytest.fixture
def slowly(monkeypatch):
    """As if all jobs were made two seconds before the first is sent."""
    module = import_module("django_rtq.core.tasks.task")  # `task` in that package is the decorator
    real = module.new_job_id
    monkeypatch.setattr(module, "new_job_id", lambda: f"{int(real()[:12], 16) - 2000:012x}{real()[12:]}")


@pytest.mark.parametrize("how", ["plain", "unique", "coroutine"])
def test_many_jobs_are_as_old_as_their_enqueueing(redis, slowly, how, broker, monkeypatch):
    monkeypatch.setattr(enqueue_calls, "CALLS_IN_FLIGHT", 1)  # so that two trips need few jobs
    work, many = (once, MAINTAIN_AT_ONCE + 1) if how == "unique" else (step, AT_ONCE + 1)
    if how == "coroutine":
        jobs = asyncio.run(work.adelay_many([((number,), {}) for number in range(many)]))
        ids = [job.id for job in jobs]
    else:
        ids = delay_many(work, many)

    assert lane(redis) == ids == sorted(ids)
    assert redis.hlen(broker.keys.of(QUEUE).waiting_since) == 0
    assert time.time_ns() // 1_000_000 - int(ids[0][:12], 16) < 1500


def test_few_jobs_keep_their_ids(redis, slowly, broker):
    ids = delay_many()

    assert lane(redis) == ids
    assert redis.hlen(broker.keys.of(QUEUE).waiting_since) == TOGETHER
