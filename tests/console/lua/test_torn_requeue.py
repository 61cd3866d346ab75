"""A power cut may keep any prefix of a requeue.

In the job's own queue it may leave a job dead, or dead and queued as it is in the end, never queued as it was before.
In another queue it may leave a job in both queues, never in none.
"""

import pytest

from django_rtq.core.handle import JobHandle
from tests.protocol.model import requeue_calls
from tests.protocol.model.script_calls import ALL_CALLS, prepared
from tests.protocol.test_torn_log import copy_of, cuts, restore, writes_of
from tests.support.jobs import QUEUE
from tests.support.snapshots import snapshot

pytestmark = pytest.mark.long

CALLS = [verb for verb in ALL_CALLS if verb.startswith("requeue")]
ELSEWHERE = [verb for verb in CALLS if ALL_CALLS[verb].act is requeue_calls.requeue]
OF_A_JOB = ("jobs", "failures", "crashes", "digests")


@pytest.mark.parametrize("verb", [verb for verb in CALLS if verb not in ELSEWHERE])
def test_after_no_prefix_of_a_requeue_a_job_is_queued_as_it_was_before(redis, broker, verb):
    call = ALL_CALLS[verb]
    jobs = prepared(redis, broker, call)
    copy = copy_of(redis)
    writes = writes_of(redis, lambda: call.act(broker, jobs))
    ended = snapshot(redis)

    for kept in cuts(writes):
        restore(redis, copy, writes[:kept])
        live = snapshot(redis)
        for job_id in (job_id for key in live if key.startswith("lane:") for job_id in live[key]):
            found, expected = ({key: each.get(key, {}).get(job_id) for key in OF_A_JOB} for each in (live, ended))
            assert found == expected, writes[:kept]
            assert live.get("unique:d1") == ended.get("unique:d1")
    assert any(key.startswith("lane:") for key in ended)


@pytest.mark.parametrize("is_sent_again", [False, True], ids=["once", "sent_again"])
@pytest.mark.parametrize("verb", ELSEWHERE)
def test_no_prefix_of_a_requeue_elsewhere_loses_a_job(redis, broker, verb, is_sent_again):
    call = ALL_CALLS[verb]
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
