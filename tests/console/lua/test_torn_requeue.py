"""A power cut may keep any prefix of a requeue in another queue. It may leave a job in both queues, never in none."""

import pytest

from django_rtq.core.handle import JobHandle
from tests.protocol.model.all_calls import REQUEUE_CALLS
from tests.protocol.model.script_calls import prepared
from tests.protocol.test_torn_log import copy_of, cuts, restore, writes_of
from tests.support.jobs import QUEUE
from tests.support.snapshots import snapshot

pytestmark = pytest.mark.long


@pytest.mark.parametrize("is_sent_again", [False, True], ids=["once", "sent_again"])
@pytest.mark.parametrize("verb", [verb for verb in REQUEUE_CALLS if verb != "requeue, changed"])
def test_no_prefix_of_a_requeue_elsewhere_loses_a_job(redis, broker, verb, is_sent_again):
    call = REQUEUE_CALLS[verb]
    job_ids = {job.id for job in prepared(redis, broker, call)}
    copy = copy_of(redis)
    jobs = [JobHandle(job_id, QUEUE) for job_id in sorted(job_ids)]
    writes = writes_of(redis, lambda: call.act(broker, jobs))
    assert writes

    for kept in cuts(writes):
        restore(redis, copy, writes[:kept])
        if is_sent_again:
            call.act(broker, jobs)
        live = snapshot(redis)
        found = [job_id for job_id in job_ids for key in ("jobs", "bulk:jobs") if job_id in live.get(key, ())]
        assert set(found) == job_ids
        assert len(found) == len(job_ids) or not is_sent_again
        for job_id in live.get("bulk:jobs", ()):  # each has a place, and no more than one
            places = [key for key in live if _is_place(key) and job_id in live[key]]
            assert len(places) == 1 or (len(places) == 2 and is_sent_again and kept), (writes[:kept], places)


def _is_place(key):
    return key.startswith("bulk:lane:") or key in ("bulk:scheduled", "bulk:dead")
