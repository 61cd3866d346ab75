"""Jobs that have crashed a worker run apart from others, in groups that halve with each crash (D47)."""

import pytest

from django_rtq.core.broker.settlement import Settlement
from tests.support.jobs import QUEUE, WORKER, claim, queued_job
from tests.support.snapshots import snapshot


def crashed_jobs(redis, broker, crashes, *, max_crashes=3):
    """Jobs that have crashed so often, in this order."""
    jobs = [queued_job(broker, client=str(number), max_crashes=max_crashes) for number in range(len(crashes))]
    for job, times in zip(jobs, crashes, strict=True):
        if times:
            redis.hset(broker.keys.of(QUEUE).crashes, job.id, times)
    return [job.id for job in jobs]


@pytest.mark.parametrize(
    ("crashes", "slots", "together"),
    [
        ([1] * 9, 8, 4),  # half of the slots
        ([2] * 9, 8, 2),  # a quarter
        ([2] * 9, 2, 1),
        ([3] * 9, 100, 1),  # once more, and it would be dead
        ([1] * 9, 1, 1),
        ([1] * 9, 7, 3),
        ([1, 2, 1, 1, 1], 8, 2),  # each may say how many are beside it
        ([1, 1, 1, 2, 1], 8, 3),
        ([1, 3], 8, 1),
        ([3, 1], 8, 1),
        ([1, 1, 0, 1], 8, 2),  # apart from others
        ([0, 0, 1, 1], 8, 2),
        ([1] * 3, 100, 3),
    ],
)
def test_jobs_that_crashed_run_in_groups_that_halve_with_each_crash(redis, broker, crashes, slots, together):
    ids = crashed_jobs(redis, broker, crashes)

    broker.sign_on([QUEUE], WORKER)
    (claimed,) = broker.claim(WORKER, [QUEUE], slots, idle=slots).claimed

    assert [i.decode() for i in claimed.ids] == ids[:together]
    assert claimed.status == "suspect"


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
