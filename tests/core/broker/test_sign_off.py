"""A worker that holds nothing any more leaves."""

from tests.support.jobs import QUEUE, WORKER
from tests.support.snapshots import GONE, changes, snapshot


def test_nothing_is_left_of_it(redis, broker):
    broker.sign_on([QUEUE, "low"], WORKER)
    before = snapshot(redis)

    assert broker.sign_off([QUEUE, "low"], WORKER)

    assert changes(before, snapshot(redis)) == {
        **{key: GONE for key in ("workers", "signed_on", "low:workers", "low:signed_on")}
    }
