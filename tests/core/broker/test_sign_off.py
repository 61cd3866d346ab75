"""A worker that holds nothing any more leaves."""

from tests.support.jobs import QUEUE, WORKER, claimed_job, queued_job
from tests.support.snapshots import GONE, changes, snapshot


def test_nothing_is_left_of_it(redis, broker):
    broker.sign_on([QUEUE, "low"], WORKER)
    before = snapshot(redis)

    assert broker.sign_off([QUEUE, "low"], WORKER)

    assert changes(before, snapshot(redis)) == {
        **{key: GONE for key in ("workers", "signed_on", "low:workers", "low:signed_on")}
    }


def test_a_token_that_it_may_have_taken_is_given_back(redis, broker):
    queued_job(broker)
    broker.sign_on([QUEUE], WORKER)
    redis.zpopmin(broker.keys.of(QUEUE).work_signal)
    before = snapshot(redis)

    broker.sign_off([QUEUE], WORKER)

    assert changes(before, snapshot(redis)) == {
        "workers": GONE,
        "signed_on": GONE,
        "work_signal": {"work": 0},
    }


def test_it_may_not_leave_with_a_job_in_its_hands(redis, broker):
    claimed_job(broker)
    before = snapshot(redis)

    assert not broker.sign_off([QUEUE], WORKER)

    assert snapshot(redis) == before
