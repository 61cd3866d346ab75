"""The overview that viewers share is the same as one that is read for each."""

from dataclasses import replace

import pytest

from django_rtq.console.inspector import shared_overview
from django_rtq.console.inspector.overview import OverviewReader
from django_rtq.exceptions import BrokerUnavailable
from tests.console.lua.test_time_series import set_counters
from tests.support.jobs import QUEUE, claimed_job, dead_job, queued_job, scheduled_job

QUEUES = [f"queue-{number}" for number in range(12)]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Nothing is shared because it is young."""
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 0.0)


@pytest.fixture
def shared(inspector):
    return inspector.shared_overview


@pytest.fixture
def reads(monkeypatch):
    """The queues of each second round trip."""
    found, read = [], OverviewReader.read_queues

    def noted(self, names, *args, **kwargs):
        found.append(names)
        return read(self, names, *args, **kwargs)

    monkeypatch.setattr(OverviewReader, "read_queues", noted)
    return found


@pytest.fixture
def many(broker):
    """Queues in which nothing happens, looked at before."""
    broker.register_queues(QUEUES)
    for queue in QUEUES:
        scheduled_job(broker, queue=queue)


def settled(shared):
    """Look until the pulses are known."""
    for _ in range(3):
        shared.read()


def facts(overview):
    """What does not go on with time."""
    return [
        (
            replace(
                row.details, oldest_seconds=None, paused_seconds=None, contact_seconds=None, scheduler_seconds=None
            ),
            row.slots,
            row.series.counts.get("failed"),
            row.newest_dead and row.newest_dead.id,
        )
        for row in overview.queues
    ], [(worker.name, [job.id for job in worker.running]) for worker in overview.workers]


def test_quiet_queues_are_read_in_turn(many, shared, reads):
    settled(shared)
    del reads[:]
    for _ in range(6):
        shared.read()

    few = [names for names in reads if len(names) < len(QUEUES)]  # all, when a minute has ended long ago
    assert all(len(names) == 2 for names in few)
    assert len(few) >= 4
    assert len({name for names in reads for name in names}) >= 8


@pytest.mark.parametrize("happen", [queued_job, scheduled_job, claimed_job, dead_job])
def test_a_queue_in_which_something_happened_is_right_at_once(many, broker, inspector, shared, happen):
    settled(shared)
    for queue in ("queue-7", "queue-8"):
        happen(broker, queue=queue)

    assert facts(shared.read()) == facts(inspector.overview.read())


def test_many_queues_are_looked_at_with_several_scripts(many, broker, inspector, shared, monkeypatch):
    monkeypatch.setattr(shared_overview, "PULSES_AT_ONCE", 3)
    settled(shared)
    for queue in ("queue-1", "queue-9"):
        dead_job(broker, queue=queue)

    assert facts(shared.read()) == facts(inspector.overview.read())


def test_a_new_queue_a_new_worker_and_a_pause_are_seen(many, broker, inspector, shared):
    settled(shared)
    queued_job(broker, queue="newcomer")
    assert facts(shared.read()) == facts(inspector.overview.read())
    inspector.pause("queue-3")
    assert facts(shared.read()) == facts(inspector.overview.read())


def test_a_forgotten_queue_is_gone(broker, inspector, shared):
    broker.register_queues([QUEUE, "typo"])
    settled(shared)
    assert broker.maintenance.forget("typo") == "forgotten"

    assert [row.details.name for row in shared.read().queues] == [QUEUE]


def test_ages_go_on_though_a_queue_is_not_read(many, broker, shared):
    for queue in QUEUES:
        queued_job(broker, queue=queue)
    settled(shared)
    first = shared.read()
    second = shared.read()

    oldest = [[row.details.oldest_seconds for row in overview.queues] for overview in (first, second)]
    assert all(later >= earlier for earlier, later in zip(*oldest, strict=True))
    assert sum(oldest[1]) > sum(oldest[0])


def test_charts_go_on_though_a_queue_is_not_read(many, broker, redis, inspector, shared):
    minute = redis.time()[0] // 60
    for queue in QUEUES:
        redis.hset(broker.keys.of(queue).stats_of(minute - 5), "failed", 3)
    settled(shared)

    series, expected = shared.read().queues[-1].series, inspector.overview.read().queues[-1].series
    assert series.of("failed") == expected.of("failed") or series.begins_at < expected.begins_at


def test_a_series_moves_on_by_steps_without_events(broker, redis, inspector):
    set_counters(redis, broker, redis.time()[0] // 60 - 5, failed=3)
    before = inspector.overview.time_series(QUEUE, 60, step=1)
    now_ms = int(before.begins_at.timestamp() * 1000) + 62 * 60_000

    later = inspector.overview.series.later(QUEUE, 60, 1, now_ms)

    assert later.of("failed") == [*before.of("failed")[3:], 0, 0, 0]
    assert (later.begins_at - before.begins_at).total_seconds() == 180
    assert inspector.overview.series.later("unknown", 60, 1, now_ms) is None


@pytest.fixture
def crowd(broker, monkeypatch):
    """More workers than are read each time: a queue of three, of which one runs a job."""
    monkeypatch.setattr(shared_overview, "MOST_WORKERS", 2)
    broker.register_queues([QUEUE])
    for name in ("a", "b", "c"):
        broker.sign_on([QUEUE], name)
        broker.heartbeat([QUEUE], {name: {"slots": 5}}, promote=True)
    return claimed_job(broker, worker="a")


def test_many_workers_are_read_from_time_to_time(broker, shared, crowd, monkeypatch):
    def seen():
        overview = shared.read()
        (row,) = overview.queues
        return [len(worker.running) for worker in overview.workers], row.slots, row.details.running

    assert seen() == ([1, 0, 0], 15, 1)
    claimed_job(broker, worker="b")
    assert seen() == ([1, 0, 0], 15, 2)  # numbers of queues are right at once

    monkeypatch.setattr(shared_overview, "MOST_WORKERS", 3)
    assert seen() == ([1, 1, 0], 15, 2)


def test_of_many_workers_no_queue_is_unknown_and_who_asks_for_all_gets_all(broker, inspector, shared, crowd):
    shared.read()
    queued_job(broker, queue="newcomer")
    claimed_job(broker, worker="b")
    assert facts(shared.read()) == facts(inspector.overview.read())

    claimed_job(broker, worker="c")
    assert facts(shared.read(fresh=True)) == facts(inspector.overview.read())


def test_many_workers_are_read_again_in_time(broker, inspector, shared, crowd, monkeypatch):
    shared.read()
    claimed_job(broker, worker="b")
    shared._workers_at -= 1.5  # three workers, two in a second

    assert facts(shared.read()) == facts(inspector.overview.read())


def test_within_a_second_it_is_read_once(broker, shared, reads, monkeypatch):
    broker.register_queues([QUEUE])
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 1000.0)

    assert shared.read() is shared.read()
    assert len(reads) == 1
    assert shared.read(fresh=True) is not None
    assert len(reads) == 2


def test_an_error_is_shared_too_and_then_forgotten(redis, broker, shared, monkeypatch):
    broker.register_queues([QUEUE])
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 1000.0)
    asked = []

    def fail(self, **kwargs):
        asked.append(1)
        raise BrokerUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(OverviewReader, "read_names", fail)
        for _ in range(2):
            with pytest.raises(BrokerUnavailable):
                shared.read()
    assert len(asked) == 1
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 0.0)
    assert [row.details.name for row in shared.read().queues] == [QUEUE]
