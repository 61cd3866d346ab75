"""How full a queue is."""

import time

import pytest

from tests.support.jobs import (
    QUEUE,
    claim,
    dead_job,
    job_id,
    new_job,
    queued_job,
)
from tests.support.single_steps import promote


def test_it_is_told_when_somebody_looked_for_due_jobs(redis, broker, readers):
    assert readers.queues.get(QUEUE).scheduler_seconds is None

    promote(broker, QUEUE)

    assert 0 <= readers.queues.get(QUEUE).scheduler_seconds < 5


def test_a_job_that_waits_in_two_places_after_a_torn_log_makes_no_number_negative(redis, broker, readers):
    job = dead_job(broker)
    redis.hset(broker.keys.of(QUEUE).running("w1"), job.id, "1 1")
    broker.sign_on([QUEUE], "w1")

    (details,) = readers.queues.details([QUEUE])

    assert (details.queued, details.running, details.dead) == (0, 1, 1)


def test_the_oldest_is_none_of_those_that_were_cancelled(redis, broker, readers):
    now_ms = time.time_ns() // 1_000_000
    for client, age_ms, is_cancelled in [("x", 90_000, True), ("x", 60_000, False), ("y", 80_000, True)]:
        job = new_job(client=client)._replace(id=job_id("old", now_ms - age_ms))
        broker.enqueue(QUEUE, [job])
        redis.hset(broker.keys.of(QUEUE).waiting_since, job.id, now_ms - age_ms)
        if is_cancelled:  # as where a claim has left it at the front
            broker.redis.execute_one(("HDEL", broker.keys.of(QUEUE).jobs, job.id))
            redis.hset(broker.keys.of(QUEUE).cancelled_in_lane, job.id, f"0:{client}")
    queued_job(broker, client="y")
    queued_job(broker, client="z")

    (details,) = readers.queues.details([QUEUE])

    assert (details.queued, details.clients) == (3, 3)
    assert details.oldest_seconds == pytest.approx(60, abs=5)


@pytest.fixture
def waits(redis, broker):
    """Queues a job of a client that has been waiting for some seconds."""

    def since(client, seconds, number=1):
        for _ in range(number):
            queued_job(broker, client=client)
        redis.zadd(broker.keys.of(QUEUE).lanes, {f"0:{client}": redis.time()[0] * 1000 - seconds * 1000})

    return since


def test_jobs_of_a_paused_client_do_not_count_for_the_oldest(broker, readers, waits, rtq):
    waits("north", 900, number=3)
    waits("south", 60)
    rtq.clients["north"].pause(QUEUE, by="ada")

    details = readers.queues.get(QUEUE)

    assert details.oldest_seconds == pytest.approx(60, abs=5)
    (pause,) = details.paused_clients
    assert (pause.client, pause.by, pause.held) == ("north", "ada", 3)
    assert 0 <= pause.seconds < 60
    assert details.queued == 4


def test_if_only_paused_clients_wait_there_is_no_oldest(redis, broker, readers, waits, rtq):
    waits("north", 900)
    rtq.clients["north"].pause(QUEUE)
    assert readers.queues.get(QUEUE).oldest_seconds is None

    rtq.clients["north"].resume(QUEUE)
    details = readers.queues.get(QUEUE)
    assert (details.oldest_seconds, details.paused_clients) == (pytest.approx(900, abs=5), ())
    assert not redis.exists(broker.keys.of(QUEUE).paused_clients)


@pytest.mark.parametrize("cancelled", [0, 1])
@pytest.mark.parametrize("paused", [49, 60, 600])
def test_very_many_clients_that_may_not_start_hide_nobody(redis, broker, readers, access, waits, paused, cancelled):
    for number in range(cancelled):
        access.cancel(queued_job(broker, client=f"cancelled{number}").id)
    for number in range(paused):
        waits(f"p{number}", 900)
    broker.limits.change(QUEUE, {f"run:paused:p{number}": f"{number + 1} ada" for number in range(paused)})
    while redis.exists(broker.keys.of(QUEUE).bands):  # claims find out who may start a job
        assert not claim(broker, worker="w1")
    waits("south", 60)
    waits("east", 50)

    details = readers.queues.get(QUEUE)

    assert details.oldest_seconds == pytest.approx(60, abs=5)
    assert [pause.client for pause in details.paused_clients] == [f"p{number}" for number in range(min(paused, 50))]


def test_an_index_that_names_a_client_that_is_not_paused_is_not_believed(redis, broker, readers):
    queued_job(broker, client="north")
    redis.zadd(broker.keys.of(QUEUE).paused_clients, {"north": 1})

    assert readers.queues.get(QUEUE).paused_clients == ()
