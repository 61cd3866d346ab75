"""A job gets an event."""

from tests.protocol.model.step_calls import send_event, waiting_job
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claim,
    finished_job,
    new_job,
    queued_job,
    settle,
)
from tests.support.single_steps import promote
from tests.support.snapshots import MS, snapshot

KNOWN = {"event 1 approved": f"{MS} 7", "last approved": "1", "token approved\nt1": "1", "sent": "1", "bytes": "15"}


def test_a_job_that_waits_for_it_is_queued(redis, broker):
    job = waiting_job(broker)

    assert send_event(broker, job) == "sent"

    after = snapshot(redis, times=False)
    assert "scheduled" not in after
    assert after["waiting_since"] == {"a": MS}
    assert claim(broker, worker=WORKER) == [job.id]
    assert snapshot(redis, times=False)["steps:a"] == KNOWN


def test_sent_twice_it_is_one(redis, broker):
    job = waiting_job(broker)
    send_event(broker, job)
    before = snapshot(redis)

    assert send_event(broker, job) == "sent"

    assert snapshot(redis) == before


def test_events_of_two_names_may_have_the_same_token(redis, broker):
    job = waiting_job(broker)
    send_event(broker, job, event="paid")

    assert send_event(broker, job) == "sent"

    after = snapshot(redis, times=False)["steps:a"]
    assert after == {
        **KNOWN,
        "event 1 paid": f"{MS} 7",
        "last paid": "1",
        "token paid\nt1": "1",
        "sent": "2",
        "bytes": after["bytes"],
    }
    assert claim(broker, worker=WORKER) == [job.id]


def test_a_job_that_does_not_wait_for_it_keeps_it(redis, broker):
    sleeps = waiting_job(broker, waits_for="1 0")
    queued = queued_job(broker, "b", due="+60000")

    for job in (sleeps, queued):
        assert send_event(broker, job) == "sent"

    after = snapshot(redis, times=False)
    assert after["scheduled"].keys() == {"a", "b"}
    assert after["steps:a"] == after["steps:b"] == KNOWN


def test_a_job_that_waits_for_one_of_another_name_looks_again(redis, broker):
    """A deploy may have renamed it."""
    job = waiting_job(broker, waits_for="0 0 1 other")

    assert send_event(broker, job) == "sent"

    after = snapshot(redis, times=False)
    assert "scheduled" not in after
    assert after["steps:a"] == KNOWN


def test_it_is_late_when_the_wait_is_over(redis, broker):
    job = waiting_job(broker, ms=0)
    before = snapshot(redis)

    assert send_event(broker, job) == "late"

    assert snapshot(redis) == before


def test_a_job_that_is_over_or_unknown_gets_none(redis, broker):
    over, unknown = finished_job(broker, "a"), new_job("b")
    before = snapshot(redis)

    assert send_event(broker, over) == "finished"
    assert send_event(broker, unknown) == "missing"

    assert snapshot(redis) == before


def test_a_job_that_has_failed_meanwhile_is_not_queued_early(redis, broker, keys):
    job = waiting_job(broker)
    redis.zadd(keys.scheduled, {job.id: 1})
    promote(broker, QUEUE)
    assert claim(broker, worker=WORKER) == [job.id]
    settle(broker, "retry", job)

    assert send_event(broker, job) == "sent"

    after = snapshot(redis)
    assert after["retrying"] == after["scheduled"]


def test_what_a_paused_task_holds_is_not_queued(redis, broker):
    job = waiting_job(broker)
    redis.zadd(broker.keys.of(QUEUE).scheduled, {job.id: 100e13})

    assert send_event(broker, job) == "sent"

    assert job.id in snapshot(redis)["scheduled"]


def test_so_many_may_be_unread(redis, broker):
    job = waiting_job(broker, waits_for="0 2 1 other")

    answers = [send_event(broker, job, token=f"t{number}", limits=(3, 100, 1000)) for number in range(6)]

    assert answers == ["sent"] * 5 + ["full"]
    assert send_event(broker, job, token="t4", limits=(3, 100, 1000)) == "sent"  # it is there
    assert send_event(broker, queued_job(broker, "b"), limits=(1, 100, 1000)) == "sent"


def test_a_job_gets_so_many(redis, broker):
    job = waiting_job(broker)

    assert [send_event(broker, job, token=token, limits=(9, 2, 1000)) for token in "abc"] == ["sent", "sent", "full"]


def test_the_values_have_so_many_bytes(redis, broker):
    job = waiting_job(broker)
    as_stored = len("1795205063204 7")

    assert send_event(broker, job, limits=(9, 9, 20)) == "sent"
    assert send_event(broker, job, token="t2", value="123456", limits=(9, 9, 20)) == "large"
    assert send_event(broker, job, token="t3", value="8", limits=(9, 9, as_stored + 1)) == "sent"
    assert send_event(broker, job, token="t4", value="9", limits=(9, 9, 2 * as_stored)) == "large"


def test_an_event_of_another_name_is_not_late(redis, broker):
    job = waiting_job(broker, ms=0)

    assert send_event(broker, job, "other") == "sent"


def test_it_is_deleted_with_the_job(redis, broker, access):
    job = queued_job(broker, "a")
    send_event(broker, job)

    access.cancel(job.id)

    assert not [name for name in snapshot(redis) if "step" in name]
