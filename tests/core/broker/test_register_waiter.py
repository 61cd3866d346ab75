"""Waiting for the end of a job: who waits is told, by whatever ends it."""

import math
import threading
import time

import pytest

from django_rtq.core.broker import one_job as module
from django_rtq.core.broker.one_job import JobAccess
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import read_config
from django_rtq.exceptions import BrokerUnavailable, JobNotFound, ResultTimeout
from testproject.redis_server import PrivateRedis
from tests.support.apps import Readers
from tests.support.jobs import (
    QUEUE,
    claim,
    dead_job,
    finished_job,
    new_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
)
from tests.support.redis_server import Redis
from tests.support.snapshots import changes, snapshot
from tests.support.waiting import PATIENCE, wait_until


def wait_for_end(broker, queue, job_id, timeout):
    """Whether the job was over in time."""
    try:
        return bool(JobAccess(broker).wait(job_id, queue, timeout))
    except JobNotFound:
        return True
    except ResultTimeout:
        return False


class Waiting(threading.Thread):
    def __init__(self, broker, job, timeout=20.0):
        super().__init__(daemon=True)
        self._arguments = (broker, QUEUE, job.id, timeout)
        self.answer, self.seconds = None, 0.0

    def run(self):
        started = time.monotonic()
        try:
            self.answer = wait_for_end(*self._arguments)
        except BrokerUnavailable as error:
            self.answer = error
        self.seconds = time.monotonic() - started


def waiters_on(redis):
    return [c for c in redis.client_list() if c["name"].startswith("rtq:wait") and c["cmd"] == "blmove"]


def waiting_connections(redis):
    return [c for c in redis.client_list() if c["name"] == "rtq:wait"]


@pytest.fixture
def wait(redis, broker):
    """Let some wait for a job; gives them back when they are blocked."""
    wait_until(lambda: not waiting_connections(redis))  # of a test before this one, whose end Redis has not noticed yet
    started = []

    def start(job, number=1, **options):
        threads = [Waiting(broker, job, **options) for _ in range(number)]
        started.extend(threads)
        for thread in threads:
            thread.start()
        wait_until(lambda: len(waiters_on(redis)) == len(started))
        return threads

    yield start
    for thread in started:
        thread.join(PATIENCE)


def cancel(broker, job):
    JobAccess(broker).cancel(job.id, QUEUE)


def purge(broker, job):
    assert Readers(broker).sweeps.purge_some(QUEUE, None) == 1


def run_to(verb):
    def end(broker, job):
        claim(broker)
        settle(broker, verb, job, worker="w2")

    return end


def end(broker, verb, job, *threads):
    """Let a job end that some wait for."""
    run_to(verb)(broker, job)
    for thread in threads:
        thread.join(PATIENCE)


def crash(broker, job):
    claim(broker)
    broker.reclaim_child(QUEUE, "w2", [job.id])


ENDS = {
    "ack": run_to("ack"),
    "bury": run_to("bury"),
    "expire": run_to("expire"),
    "cancel": cancel,
    "purge": purge,
    "crash": crash,
}


@pytest.mark.parametrize("end", ENDS)
def test_who_waits_is_told_of_the_end(redis, broker, wait, end):
    job = queued_job(broker, "a", max_crashes=0)
    (thread,) = wait(job)

    ENDS[end](broker, job)
    thread.join(PATIENCE)

    assert thread.answer is True
    after = snapshot(redis)
    assert "waiters" not in after
    assert 50_000 < redis.pttl(f"{{rtq:{QUEUE}}}:finished_signal:{job.id}") <= 60_000


def test_all_who_wait_are_told(redis, broker, wait):
    job, other = queued_job(broker, "a"), scheduled_job(broker, "b")
    threads = wait(job, 6)

    end(broker, "ack", job, *threads)

    assert [thread.answer for thread in threads] == [True] * 6
    assert redis.llen(f"{{rtq:{QUEUE}}}:finished_signal:{job.id}") == 1
    assert wait_for_end(broker, QUEUE, other.id, 0) is False


def test_an_attempt_that_failed_is_not_the_end(redis, broker, wait):
    job = queued_job(broker, "a")
    (thread,) = wait(job)

    run_to("retry")(broker, job)
    assert redis.zcard(f"{{rtq:{QUEUE}}}:waiters") == 1
    cancel(broker, job)
    thread.join(PATIENCE)

    assert thread.answer is True


@pytest.mark.parametrize("over", [finished_job, dead_job, lambda broker: new_job()])
def test_nobody_waits_for_what_is_over_or_never_was(redis, broker, over):
    job = over(broker)
    before, signal = snapshot(redis), f"finished_signal:{job.id}"
    seen, began = ({}, 0), -math.inf
    while seen[1] <= 0 and time.monotonic() - began > 1:  # the signal lives for a second, and the machine may be busy
        began = time.monotonic()
        for _ in range(2):
            assert wait_for_end(broker, QUEUE, job.id, None) is True
        seen = changes(before, snapshot(redis)), redis.pttl(f"{{rtq:{QUEUE}}}:{signal}")

    assert seen[0] == {signal: ["over"]}
    assert 0 < seen[1] <= 1000


def test_a_wait_does_not_shorten_the_life_of_a_token_for_others(redis, broker, wait):
    job = queued_job(broker)
    (thread,) = wait(job)
    end(broker, "ack", job, thread)

    assert wait_for_end(broker, QUEUE, job.id, 5) is True

    assert redis.llen(f"{{rtq:{QUEUE}}}:finished_signal:{job.id}") == 1
    assert redis.pttl(f"{{rtq:{QUEUE}}}:finished_signal:{job.id}") > 50_000


@pytest.mark.parametrize("state", [queued_job, finished_job, dead_job])
def test_a_question_without_a_wait_changes_nothing(redis, broker, state):
    job = state(broker)
    before = snapshot(redis)

    assert wait_for_end(broker, QUEUE, job.id, 0) is (state is not queued_job)

    assert snapshot(redis) == before


def test_a_wait_does_not_poll(broker, wait, round_trips):
    over, job = finished_job(broker), queued_job(broker)
    wait_for_end(broker, QUEUE, over.id, 5)
    round_trips.clear()

    (thread,) = wait(job)
    end(broker, "ack", job, thread)
    assert wait_for_end(broker, QUEUE, over.id, 5) is True

    question = ["EVALSHA register_waiter", "EVALSHA find_job"]
    seen = [names for names in round_trips if names[-1] in ("EVALSHA find_job", "BLMOVE")]
    assert seen == [question, ["BLMOVE"], ["EVALSHA find_job"], question]


def test_as_many_connections_as_wait_at_once(redis, broker, wait):
    job, later = queued_job(broker), queued_job(broker)
    threads = wait(job, 3)
    end(broker, "ack", job, *threads)
    assert len(waiting_connections(redis)) == 3

    threads += [Waiting(broker, later)]
    threads[-1].start()
    wait_until(lambda: waiters_on(redis))
    end(broker, "ack", later, threads[-1])

    assert len(waiting_connections(redis)) == 3


@pytest.mark.parametrize("is_noticed", [True, False])
def test_connections_that_the_server_has_closed_do_not_fail_the_next_wait(redis, broker, wait, monkeypatch, is_noticed):
    if not is_noticed:  # the end of a connection may arrive just after it was checked
        monkeypatch.setattr("django_rtq.core.broker.redis.speedups._is_open", lambda connection: True)
    job = queued_job(broker)
    threads = wait(job, 3)
    end(broker, "ack", job, *threads)
    later = queued_job(broker)
    for client in waiting_connections(redis):
        redis.client_kill_filter(_id=client["id"])

    assert wait_for_end(broker, QUEUE, later.id, 0.1) is False


@pytest.mark.parametrize("live", [queued_job, scheduled_job, retrying_job])
def test_a_wait_takes_no_longer_than_it_may(redis, broker, live):
    job = live(broker)
    before = snapshot(redis)
    started = time.monotonic()

    assert wait_for_end(broker, QUEUE, job.id, 0.15) is False

    assert 0.15 <= time.monotonic() - started < 10
    assert set(changes(before, snapshot(redis))) == {"waiters"}
    assert 0 < redis.pttl(f"{{rtq:{QUEUE}}}:waiters") <= 120_000


def test_who_gave_up_waiting_is_forgotten(redis, broker):
    first, second = queued_job(broker, "a"), queued_job(broker, "b")
    waiting = f"{{rtq:{QUEUE}}}:waiters"
    wait_for_end(broker, QUEUE, first.id, 0.01)
    redis.zadd(waiting, {first.id: 1})

    wait_for_end(broker, QUEUE, second.id, 0.01)

    assert redis.zrange(waiting, 0, -1) == [second.id.encode()]


def test_the_token_of_an_earlier_end_does_not_end_the_wait_for_a_requeued_job(redis, broker, wait):
    job = queued_job(broker, "a")
    (thread,) = wait(job)
    end(broker, "bury", job, thread)
    assert Readers(broker).actions.done("requeue", QUEUE, [job.id]) == [job.id]

    assert wait_for_end(broker, QUEUE, job.id, 0.1) is False

    assert not redis.exists(f"{{rtq:{QUEUE}}}:finished_signal:{job.id}")


def test_a_lost_token_costs_no_more_than_a_slice(monkeypatch, redis, broker, wait):
    monkeypatch.setattr(module, "MAX_WAIT_SECONDS", 0.3)
    job = queued_job(broker, "a")
    (thread,) = wait(job)
    redis.delete(f"{{rtq:{QUEUE}}}:waiters")

    end(broker, "ack", job, thread)

    assert thread.answer is True
    assert thread.seconds < 15  # of the 20 that it may take


# -- trouble


def test_a_connection_that_is_cut_is_made_anew(redis, broker, wait):
    job = queued_job(broker, "a")
    (thread,) = wait(job)
    (client,) = waiters_on(redis)

    redis.client_kill_filter(_id=client["id"])
    wait_until(lambda: {c["id"] for c in waiters_on(redis)} - {client["id"]})
    end(broker, "ack", job, thread)

    assert thread.answer is True


def test_connections_to_a_former_primary_do_not_end_a_wait(broker):
    job = queued_job(broker)
    steps, away = module.until_over(broker, job.id, QUEUE, 5), BrokerUnavailable("READONLY")
    question = next(steps)

    for _ in range(2):  # after a wait, or before the first one
        assert steps.send([away, away])[1] == question[1]
        assert isinstance(steps.send([b"wait", None]), module._Wait)
        assert steps.send(away)[1] == question[1]
        steps.send([b"wait", None])
        assert steps.send(False)[1] == question[1]
    steps.send([away, away])
    steps.send([away, away])
    with pytest.raises(BrokerUnavailable):
        steps.send([away, away])


def test_a_full_server_makes_a_wait_slower_and_does_not_end_it(monkeypatch, redis, broker):
    monkeypatch.setattr("django_rtq.core.broker.redis.client.FULL_SERVER_SECONDS", 0.05)
    job = queued_job(broker, "a")
    thread = Waiting(broker, job)
    with redis.full_memory():
        thread.start()
        wait_until(lambda: redis.exists(f"{{rtq:{QUEUE}}}:waiters"))
        run_to("ack")(broker, job)
        thread.join(PATIENCE)

    assert thread.answer is True


def test_a_server_that_goes_away_ends_the_wait_with_an_error():
    with PrivateRedis() as server:
        broker = WorkerBroker(read_config({"REDIS": server.url}, debug=False))
        job = queued_job(broker)
        thread = Waiting(broker, job)
        thread.start()
        with Redis.from_url(server.url) as redis:
            wait_until(lambda: waiters_on(redis))
    thread.join(PATIENCE)
    broker.close()

    assert isinstance(thread.answer, BrokerUnavailable)
