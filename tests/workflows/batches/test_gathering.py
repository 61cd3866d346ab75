"""Which of the claimed jobs run together, and which more are claimed."""

import pytest

from django_rtq.core.worker.run import Run, runs_of
from django_rtq.workflows.batches import CallGatherer
from tests.app import batch_tasks as tasks
from tests.app import tasks as other_tasks
from tests.support.jobs import QUEUE


@pytest.fixture
def gather(session, broker):
    """Claims jobs and puts them together; answers the arguments of the jobs of each call."""

    def gather(wanted=1, *, room=100):
        gatherer = CallGatherer(session, broker.config)
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


def test_suspects_get_no_others(gather, broker, session):
    (job,) = enqueue("a")
    session.fetch(1, idle=1)
    broker.reclaim_child(QUEUE, session.worker, [job.id])
    session.sign_on()
    enqueue("bc")

    assert gather(3) == [["a"]]
    assert gather(3) == [["b", "c"]]


def test_what_was_claimed_by_a_lost_reply_is_given_back(gather, redis, session, broker):
    enqueue("abc")
    fetched = session.fetch(1, idle=1)
    runs = [run for claimed in fetched.claimed for run in runs_of(claimed, session.worker)]
    redis.drop_connection("after")

    (first,) = CallGatherer(session, broker.config).gather(runs, room=10)
    assert first.others == []
    assert len(broker.running(session.worker, [QUEUE])[QUEUE]) == 3

    session.reconcile()

    assert broker.running(session.worker, [QUEUE])[QUEUE] == [first.job_id]
    assert gather() == [["b", "c"]]
