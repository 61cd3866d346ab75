"""A dead letter gets a new life with other arguments."""

import pytest

from django_rtq.exceptions import JobNotFound, PayloadTooLarge, Unserializable, WrongState
from tests.support.jobs import claim, dead_job, new_job, queued_job
from tests.support.snapshots import live_jobs, snapshot

BODY = '{"task":"shop.tasks.ship","args":[1],"kwargs":{"fast":true},"max_attempts":2,"result_ttl":0}'


def test_its_arguments_are_new_and_the_rest_is_as_it_was(redis, broker, readers, rtq):
    job = dead_job(broker, client="acme", priority=5, max_crashes=7, body=BODY)

    rtq.job(job.id).requeue_changed([2, "x"], {})

    found = readers.find(job.id)
    assert (found.state, found.args, found.kwargs) == ("queued", [2, "x"], {})
    assert (found.client, found.priority, found.max_crashes, found.failures) == ("acme", 5, 7, 0)
    assert found.options == {"max_attempts": 2, "result_ttl": 0}
    body = live_jobs(redis)[job.id].partition("\n")[2]
    assert body == '{"task":"shop.tasks.ship","args":[2,"x"],"max_attempts":2,"result_ttl":0}'
    assert claim(broker) == [job.id]


@pytest.mark.parametrize(("args", "error"), [([object()], Unserializable), (["x" * 1_100_000], PayloadTooLarge)])
def test_what_cannot_be_stored_changes_nothing(redis, broker, rtq, args, error):
    job = dead_job(broker, body=BODY)
    before = snapshot(redis)

    with pytest.raises(error, match=r"shop\.tasks\.ship"):
        rtq.job(job.id).requeue_changed(args, {})

    assert snapshot(redis) == before


def test_a_job_that_is_not_dead_is_left_alone(redis, broker, rtq):
    job = queued_job(broker, body=BODY)
    before = snapshot(redis)

    with pytest.raises(WrongState, match="is queued, not dead"):
        rtq.job(job.id).requeue_changed([], {})
    with pytest.raises(JobNotFound):
        rtq.job(new_job().id).requeue_changed([], {})

    assert snapshot(redis) == before
