"""Jobs that have crashed a worker run apart from others, in groups (D47): who is innocent is not buried."""

import pytest

from django_rtq.core.broker.settlement import Settlement
from tests.support.jobs import QUEUE, claim, queued_job
from tests.support.snapshots import snapshot


@pytest.mark.long
@pytest.mark.parametrize("max_crashes", [1, 2, 3, 5])
@pytest.mark.parametrize("slots", [2, 5, 16])
@pytest.mark.parametrize("place", [0, 7, 30])
def test_who_runs_beside_a_job_that_crashes_each_time_is_never_buried(redis, broker, max_crashes, slots, place):
    ids = [queued_job(broker, client=str(n % 4), max_crashes=max_crashes).id for n in range(31)]
    done, claims = set(), 0
    while "dead" not in snapshot(redis) or len(done) < 30:
        worker, claims = f"w{claims}", claims + 1
        taken = claim(broker, slots, worker=worker, idle=slots)
        if ids[place] in taken:
            broker.reclaim_child(QUEUE, worker, taken)  # nobody knows who of them it was
        else:
            broker.settle(worker, QUEUE, Settlement(ack=[word for job_id in taken for word in (job_id, 1000, "")]))
            done |= set(taken)
        assert claims < 31 + max_crashes

    assert set(snapshot(redis)["dead"]) == {ids[place]}
    assert done == set(ids) - {ids[place]}
