"""Which of the claimed jobs run together, which more are claimed, and which wait for others."""

import pytest

from django_rtq import signals
from django_rtq.exceptions import BrokerUnavailable
from django_rtq.worker.process.batches import CallGatherer, _Window
from django_rtq.worker.process.run import Run, runs_of
from tests.app import batch_tasks as tasks
from tests.app import tasks as other_tasks
from tests.support.jobs import QUEUE, let_fall_due, settle
from tests.support.single_steps import promote
from tests.support.snapshots import snapshot


@pytest.fixture
def gather(session, broker):
    """Claims jobs and puts them together; answers the arguments of the jobs of each call."""

    def gather(wanted=1, *, room=100, may_wait=False):
        gatherer = CallGatherer(session, broker.config, may_wait=may_wait)
        fetched = session.fetch(wanted, idle=1)
        runs = [run for claimed in fetched.claimed for run in runs_of(claimed, session.worker)]
        gather.claimed, gather.calls = runs, gatherer.gather(runs, room=room)
        return [[name_of(run) for run in (first, *first.others)] for first in gather.calls]

    return gather


def name_of(run):
    run.open()
    return run.args[0] if run.args else None


def enqueue(names, task=tasks.index, **options):
    return [task.using(**options).delay(name) for name in names]


def test_what_the_lane_of_the_client_has_is_claimed(gather):
    enqueue("abcd", client="x")
    enqueue("yz", client="y")

    assert gather() == [["a", "b", "c", "d"]]


def test_the_calls_of_several_clients_get_more_in_one_round_trip(gather, session, monkeypatch):
    for client in "xyz":
        enqueue(client * 3, client=client)
    round_trips = []
    execute = session._broker.redis.execute_each
    monkeypatch.setattr(session._broker.redis, "execute_each", lambda *args: round_trips.append(1) or execute(*args))

    assert gather(3) == [["x"] * 3, ["y"] * 3, ["z"] * 3]

    assert len(round_trips) == 2  # with the one that claimed the first jobs


def test_a_call_gets_no_more_than_its_task_says(gather):
    enqueue(range(30))

    assert gather(25) == [list(range(10)), list(range(10, 20)), list(range(20, 30))]


def test_there_is_room_for_so_many_only_and_each_call_gets_a_part_of_it(gather):
    enqueue("a" * 9, client="x")
    enqueue("b" * 9, client="y")

    assert [len(call) for call in gather(2, room=6)] == [4, 4]
    assert [len(call) for call in gather(2, room=0)] == [1, 1]


def test_without_such_a_task_nothing_is_looked_at(gather):
    enqueue("ab", other_tasks.note)

    assert gather(2) == [["a"], ["b"]]
    assert gather.calls is gather.claimed
    assert all(isinstance(run, Run) and not run.others for run in gather.calls)


def test_jobs_that_have_failed_twice_are_apart(gather, broker):
    jobs = enqueue("abc")
    keys = broker.keys.of(QUEUE)
    broker.redis.execute_one(("HSET", keys.failures, jobs[0].id, 2, jobs[2].id, 2))

    assert gather() == [["a", "c"], ["b"]]


def test_after_the_failure_before_the_last_each_runs_alone(gather, broker):
    jobs = enqueue("abc", max_attempts=2)
    broker.redis.execute_one(("HSET", broker.keys.of(QUEUE).failures, jobs[0].id, 1, jobs[1].id, 1))

    assert gather() == [["a"]]


def test_suspects_get_no_others(gather, broker, session):
    (job,) = enqueue("a")
    session.fetch(1, idle=1)
    broker.reclaim_child(QUEUE, session.worker, [job.id])
    session.sign_on()
    enqueue("bc")

    assert gather(3) == [["a"]]
    assert gather(3) == [["b", "c"]]


def test_a_lost_reply_costs_the_others_only(gather, redis, session, monkeypatch):
    enqueue("abc")

    def lose(worker, lanes):
        raise BrokerUnavailable("gone")

    monkeypatch.setattr(session._broker, "claim_lanes", lose)
    assert gather() == [["a"]]
    assert session.needs_reconcile


def test_what_was_claimed_by_a_lost_reply_is_given_back(gather, redis, session, broker):
    enqueue("abc")
    fetched = session.fetch(1, idle=1)
    runs = [run for claimed in fetched.claimed for run in runs_of(claimed, session.worker)]
    redis.drop_connection("after")

    (first,) = CallGatherer(session, broker.config, may_wait=False).gather(runs, room=10)
    assert first.others == []
    assert len(broker.running(session.worker, [QUEUE])[QUEUE]) == 3

    session.reconcile()

    assert broker.running(session.worker, [QUEUE])[QUEUE] == [first.job_id]
    assert gather() == [["b", "c"]]


# Waiting for others


def test_too_few_jobs_wait_in_redis_until_the_end_of_the_window(gather, redis, session, inspector):
    jobs = enqueue("abc", tasks.patient)
    told = []
    signals.job_suspended.connect(note := lambda job, seconds, **kwargs: told.append((job.id, seconds)))

    assert gather(may_wait=True) == []
    session.settle()

    signals.job_suspended.disconnect(note)
    assert [inspector.find(job.id).state for job in jobs] == ["scheduled"] * 3
    assert [job_id for job_id, _ in told] == [job.id for job in jobs]
    assert all(0 < seconds <= 3600 for _, seconds in told)
    due = set(snapshot(redis)["scheduled"].values())
    assert len(due) == 1
    assert session.held == []


def test_all_that_came_in_a_window_run_together_at_its_end(gather, session, broker):
    jobs = enqueue("ab", tasks.patient)
    assert gather(may_wait=True) == []
    jobs += enqueue("c", tasks.patient)
    assert gather(may_wait=True) == []
    session.settle()
    let_end(broker, *jobs)

    assert gather(may_wait=True) == [["a", "b", "c"]]


def let_end(broker, *jobs):
    """The window of these jobs is over."""
    keys = broker.keys.of(QUEUE)
    due = {int(float(broker.redis.execute_one(("ZSCORE", keys.scheduled, job.id)))) for job in jobs}
    assert len(due) == 1
    for job in jobs:
        record = broker.redis.execute_one(("HGET", keys.jobs, job.id)).decode()
        line, _, body = record.partition("\n")
        priority, crashes, ready, expires, client = line.split(" ")
        moved = int(ready) - 3_600_000  # one window earlier
        broker.redis.execute_one(
            ("HSET", keys.jobs, job.id, f"{priority} {crashes} {moved} {expires} {client}\n{body}")
        )
    let_fall_due(broker, *jobs)
    promote(broker, QUEUE)


def test_a_full_call_does_not_wait(gather):
    enqueue(range(12), tasks.patient)

    assert gather(may_wait=True) == [list(range(10))]
    assert gather(may_wait=True) == []


def test_a_call_for_which_there_was_no_room_does_not_wait(gather):
    enqueue(range(9), tasks.patient)

    assert gather(room=3, may_wait=True) == [list(range(4))]


def test_a_job_that_a_person_has_queued_before_its_time_runs_at_once(gather, session, inspector):
    jobs = enqueue("ab", tasks.patient)
    assert gather(may_wait=True) == []
    session.settle()

    inspector.run_now(jobs[1].id, QUEUE)

    assert gather(may_wait=True) == [["b"]]


def test_a_retry_does_not_wait(gather, session, broker, inspector):
    (job,) = enqueue("a", tasks.patient)
    session.fetch(1, idle=1)
    settle(broker, "retry", job, worker=session.worker)
    inspector.run_now(job.id, QUEUE)

    assert gather(may_wait=True) == [["a"]]


def test_a_job_that_would_expire_meanwhile_does_not_wait_nor_do_those_with_it(gather):
    enqueue("a", tasks.patient)
    enqueue("b", tasks.patient, expires=0.5)

    assert gather(may_wait=True) == [["a", "b"]]


def test_windows_follow_one_another_without_gaps():
    run = Run(QUEUE, b"a", b"", worker="w", now_ms=1_000_000)
    run.task = tasks.patient
    ends = set()
    for now_ms in range(1_000_000, 1_000_000 + 3 * 3_600_000, 600_000):
        run.now_ms = now_ms
        ends.add(_Window(run).end_ms)
        assert now_ms < _Window(run).end_ms <= now_ms + 3_600_000
    assert len(ends) in (3, 4)
    assert {end % 3_600_000 for end in ends} == {min(ends) % 3_600_000}
