"""on_full="drop_oldest": jobs for which the oldest ones of a full queue make room."""

import time

import pytest

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.messages import EnqueueCall
from django_rtq.exceptions import BrokerFull
from tests.broker.test_fire_schedule import SLOT_MS, fire
from tests.support.jobs import QUEUE, WORKER, claim, claim_all, new_job, queued_job, retrying_job, unique_job
from tests.support.snapshots import snapshot

SECOND_MS = 1000


@pytest.fixture
def dropping(broker):
    """A broker with the setting."""
    queues = {QUEUE: {"on_full": "drop_oldest"}}
    broker = Broker(broker.config.__class__(redis=broker.config.redis, queues=queues))
    yield broker
    broker.close()


@pytest.fixture
def dropped():
    """The ids of dropped jobs, as announced."""
    ids = []

    def note(*, job_ids, queue, **kwargs):
        assert queue == QUEUE
        ids.extend(job_ids)

    signals.job_dropped.connect(note)
    yield ids
    signals.job_dropped.disconnect(note)


def old_job(broker, age_seconds, **options):
    """A queued job that has waited for so long."""
    (job,) = [new_job(**options)]
    made = int(time.time() * 1000) - age_seconds * SECOND_MS
    job = job._replace(id=f"{made:012x}{job.id[12:]}")
    broker.enqueue(QUEUE, [job])
    keys = broker.keys.of(QUEUE)
    broker.redis.execute(
        [
            ("HDEL", keys.waiting_since, job.id),
            ("ZADD", keys.lanes, "LT", made, f"{job.priority}:{job.client}"),
        ]
    )
    return job


def test_the_oldest_job_of_the_queue_makes_room(dropping, inspector, limits, dropped, redis):
    first, second, third = (old_job(dropping, age, client=name) for age, name in ((60, "x"), (90, "y"), (30, "y")))
    limits.set_queue(QUEUE, max_waiting=3)

    new = new_job(client="z")
    assert dropping.enqueue(QUEUE, [new]) == ["ok"]

    assert dropped == [second.id]
    assert {job.id for job in (first, third, new)} == set(snapshot(redis)["jobs"])
    details = inspector.find(second.id)
    assert (details.state, details.is_dropped) == ("cancelled", True)
    assert inspector.overview.time_series(QUEUE).total("dropped") == 1


def test_it_has_the_lowest_age_whatever_its_priority(dropping, limits, dropped):
    old_job(dropping, 60, priority=-5)
    urgent = old_job(dropping, 90, priority=5)
    limits.set_queue(QUEUE, max_waiting=2)

    dropping.enqueue(QUEUE, [new_job()])

    assert dropped == [urgent.id]


def test_a_full_client_makes_room_itself(dropping, limits, dropped):
    old_job(dropping, 90, client="other")
    own = old_job(dropping, 60, client="x", priority=5)
    old_job(dropping, 30, client="x")
    limits.set_default(QUEUE, max_waiting=2)

    dropping.enqueue(QUEUE, [new_job(client="x", due="+60000")])

    assert dropped == [own.id]


def test_delayed_and_retrying_jobs_stay(dropping, limits, dropped, redis):
    retrying_job(dropping)
    dropping.enqueue(QUEUE, [new_job(due="+60000")])
    queued = queued_job(dropping)
    limits.set_queue(QUEUE, max_waiting=2)
    before = snapshot(redis)

    assert dropping.enqueue(QUEUE, [new_job()]) == ["full queue 3 2"]
    assert (dropped, snapshot(redis)) == ([], before)

    limits.set_queue(QUEUE, max_waiting=3)
    assert dropping.enqueue(QUEUE, [new_job()]) == ["ok"]
    assert dropped == [queued.id]


def test_clients_without_jobs_leave_nothing(dropping, limits, redis):
    limits.set_queue(QUEUE, max_waiting=2)
    for number in range(20):
        dropping.enqueue(QUEUE, [new_job(client=str(number), priority=number)])

    keys = snapshot(redis)
    assert sorted(name for name in keys if name.startswith(("ring:", "lane:"))) == [
        *("lane:18:18", "lane:19:19", "ring:18", "ring:19")
    ]
    assert set(keys["bands"]) == {"18", "19"}


def test_running_jobs_stay(dropping, limits, dropped):
    running = old_job(dropping, 60)
    dropping.sign_on([QUEUE], WORKER)
    claim(dropping, worker=WORKER)
    limits.set_queue(QUEUE, max_waiting=1)

    jobs = [new_job(), new_job()]
    dropping.enqueue(QUEUE, jobs[:1])
    dropping.enqueue(QUEUE, jobs[1:])

    assert dropped == [jobs[0].id] != [running.id]


def test_a_limit_of_0_drops_nothing(dropping, limits, dropped):
    queued_job(dropping)
    limits.set_queue(QUEUE, max_waiting=0)

    assert dropping.enqueue(QUEUE, [new_job()]) == ["full queue 1 0"]
    assert dropped == []


def test_the_later_jobs_of_a_call_drop_the_earlier_ones(dropping, limits, dropped):
    limits.set_queue(QUEUE, max_waiting=2)
    jobs = [new_job() for _ in range(250)]

    assert dropping.enqueue(QUEUE, jobs) == ["ok"] * 250

    assert dropped == [job.id for job in jobs[:-2]]
    assert claim_all(dropping, 500) == [job.id for job in jobs[-2:]]


def test_all_or_none_drops_no_job_of_its_own(dropping, limits, dropped):
    limits.set_queue(QUEUE, max_waiting=2)
    old = [old_job(dropping, age) for age in (90, 60)]

    refused = dropping.enqueue(QUEUE, [new_job() for _ in range(3)], all_or_none=True)
    assert (refused, dropped) == (["full", "full", "full queue 2 2"], [])
    assert dropping.enqueue(QUEUE, [new_job(), new_job()], all_or_none=True) == ["ok", "ok"]
    assert dropped == [job.id for job in old]


def test_a_dropped_unique_job_frees_its_digest(dropping, limits, dropped):
    first = unique_job()
    dropping.enqueue_unique(QUEUE, [first])
    limits.set_queue(QUEUE, max_waiting=1)

    assert dropping.enqueue_unique(QUEUE, [unique_job()]) == [f"duplicate {first.id}"]
    assert dropping.enqueue_unique(QUEUE, [unique_job(digest="d2")]) == ["ok"]
    assert dropped == [first.id]
    assert dropping.enqueue_unique(QUEUE, [unique_job()]) == ["ok"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_reply_drops_no_second_job(dropping, limits, redis, moment):
    limits.set_queue(QUEUE, max_waiting=2)
    dropping.enqueue(QUEUE, [new_job()])  # now it knows that the queue has a limit
    dropping.enqueue(QUEUE, [new_job()])
    new = new_job()
    redis.drop_connection(moment)

    assert dropping.enqueue(QUEUE, [new]) == [{"before": "ok", "after": "exists"}[moment]]
    assert len(snapshot(redis)["results"]) == 1
    assert dropping.enqueue(QUEUE, [new]) == ["exists"]


def test_a_dropped_job_that_is_sent_again_stays_dropped(dropping, limits):
    limits.set_queue(QUEUE, max_waiting=1)
    job = new_job()
    dropping.enqueue(QUEUE, [job])
    dropping.enqueue(QUEUE, [new_job()])

    assert dropping.enqueue(QUEUE, [job]) == ["exists"]


def test_a_full_server_drops_nothing(dropping, limits, redis, dropped):
    limits.set_queue(QUEUE, max_waiting=1)
    dropping.enqueue(QUEUE, [new_job()])
    before = snapshot(redis)

    with redis.full_memory(), pytest.raises(BrokerFull):
        dropping.enqueue(QUEUE, [new_job()])

    assert (dropped, snapshot(redis)) == ([], before)


def test_calls_in_one_round_trip(dropping, limits, dropped):
    limits.set_queue(QUEUE, max_waiting=2)
    jobs = [new_job() for _ in range(3)]
    calls = [EnqueueCall(QUEUE, jobs[:2]), EnqueueCall(QUEUE, jobs[2:]), EnqueueCall(QUEUE, [unique_job()])]

    assert dropping.enqueue_calls(calls) == [["ok", "ok"], ["ok"], ["ok"]]
    assert dropped == [job.id for job in jobs[:2]]


def test_the_job_of_a_schedule_drops_the_oldest(dropping, limits, dropped):
    dropping.register_queues([QUEUE])
    dropping.schedules.begin(QUEUE, "report", "d1", SLOT_MS - 1)
    limits.set_queue(QUEUE, max_waiting=1)
    job = queued_job(dropping)

    assert fire(dropping, SLOT_MS) == "fired"
    assert dropped == [job.id]
    assert fire(dropping, SLOT_MS) == "already"


def test_a_lower_limit_is_reached_step_by_step(dropping, limits, dropped):
    dropping.enqueue(QUEUE, [new_job() for _ in range(250)])
    limits.set_queue(QUEUE, max_waiting=10)

    for _ in range(3):
        assert dropping.enqueue(QUEUE, [new_job()]) == ["ok"]

    assert len(dropped) == 243
    assert dropping.redis.execute_one(("HLEN", dropping.keys.of(QUEUE).jobs)) == 10
