"""Periodic jobs start once for each slot, with any number of schedulers."""

import time

import pytest
from django.test import override_settings

from django_rtq import every, signals, task
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.schedule_store import ScheduleStore
from django_rtq.core.scheduler.scheduler import OUTDATED_MS, Dispatcher, Scheduler
from django_rtq.exceptions import BrokerFull, BrokerUnavailable
from tests.support.jobs import QUEUE, claim_all, receiving, take_all
from tests.support.redis_server import UNREACHABLE

pytestmark = pytest.mark.usefixtures("no_tasks")

NOW_MS = 1_699_999_200_000  # a whole hour, long past for the server
MINUTE_MS = 60_000


def report(*args, **kwargs):
    """A function to be made a task."""


def other():
    """Another one."""


@pytest.fixture
def clock(broker, monkeypatch):
    """The server's clock as schedulers see it; it stands still."""

    class Clock:
        now_ms = NOW_MS

    clock, states = Clock(), ScheduleStore.states
    monkeypatch.setattr(ScheduleStore, "states", lambda *args: (clock.now_ms, states(*args)[1]))
    return clock


def declare(*schedules, **options):
    return task(schedule=schedules, **options)(report)


def look(dispatcher):
    """Look at the clock, whenever it was looked at last."""
    dispatcher._next_query_at = 0.0
    return dispatcher.fire_due()


@pytest.fixture
def at(clock):
    """Let timetables look at their clock so many ms later. Returns the slots for which jobs wait, in ms from then."""

    def at(ms, *timetables):
        clock.now_ms = NOW_MS + ms
        for dispatcher in timetables:
            look(dispatcher)
        return [int(job_id[:12], 16) - NOW_MS for job_id in claim_all(get_broker())]

    return at


def test_nothing_is_declared_and_nothing_asked():
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        assert Dispatcher(get_broker(), [QUEUE]).fire_due() is None


def test_a_new_schedule_has_missed_nothing_and_fires_from_then_on(broker, at):
    declare(every(minutes=1))
    dispatcher = Dispatcher(broker, [QUEUE])

    assert at(5, dispatcher) == []
    assert at(MINUTE_MS - 1, dispatcher) == []
    assert at(MINUTE_MS, dispatcher) == [MINUTE_MS]
    assert at(MINUTE_MS + 1, dispatcher) == []
    assert at(2 * MINUTE_MS + 7, dispatcher) == [2 * MINUTE_MS]


def test_the_job_is_a_call_with_the_arguments_of_the_schedule(broker, at, clock):
    declare(every(minutes=1, name="mine", args=[1], kwargs={"b": 2}), client="acme", priority=7, max_attempts=9)
    dispatcher = Dispatcher(broker, [QUEUE])
    look(dispatcher)
    clock.now_ms += MINUTE_MS
    look(dispatcher)

    (job,) = take_all(broker)

    assert (job.task, job.args, job.kwargs, job.client) == (f"{__name__}.report", [1], {"b": 2}, "acme")
    assert len(job.id) == 32
    assert int(job.id[:12], 16) == NOW_MS + MINUTE_MS
    assert broker.schedules.states([QUEUE])[1][QUEUE]["mine"].last_job == job.id


def test_it_says_when_it_has_to_be_called_again(broker, clock):
    declare(every(minutes=1), every(hours=10))
    clock.now_ms = NOW_MS + 45_000
    dispatcher, began = Dispatcher(broker, [QUEUE]), time.monotonic()

    first = dispatcher.fire_due()
    clock.now_ms += MINUTE_MS  # it does not even ask
    second = dispatcher.fire_due()

    assert 15 - (time.monotonic() - began) <= second <= first <= 15
    assert not claim_all(broker)


def test_it_asks_for_the_time_once_a_minute_at_least(broker, clock):
    declare(every(hours=10))
    began = time.monotonic()

    wait = Dispatcher(broker, [QUEUE]).fire_due()

    assert 60 - (time.monotonic() - began) <= wait <= 60


def test_other_queues_are_the_business_of_others(broker, at):
    declare(every(minutes=1), queue_name="low")

    assert Dispatcher(broker, [QUEUE]).entries == []
    assert [entry.name for entry in Dispatcher(broker, [QUEUE, "low"]).entries] == [f"{__name__}.report"]


def test_a_scheduler_that_starts_later_goes_on_where_others_were(broker, at):
    declare(every(minutes=1))
    at(0, Dispatcher(broker, [QUEUE]))

    assert at(3 * MINUTE_MS, Dispatcher(broker, [QUEUE])) == [3 * MINUTE_MS]


def test_a_slot_passes_while_the_last_job_waits(broker, at, clock):
    declare(every(minutes=1, overlap="skip"))
    dispatcher = Dispatcher(broker, [QUEUE])
    for _ in range(4):
        look(dispatcher)
        clock.now_ms += MINUTE_MS

    assert len(claim_all(broker)) == 1


# -- changed definitions


def redeclared(broker, *schedules):
    declare(*schedules)
    return Dispatcher(broker, [QUEUE])


def test_a_schedule_that_was_edited_starts_anew(broker, at):
    old = redeclared(broker, every(hours=10, missed="all"))
    at(0, old)

    assert at(5 * MINUTE_MS + 1, redeclared(broker, every(minutes=1, missed="all"))) == []
    assert at(7 * MINUTE_MS, redeclared(broker, every(minutes=1, missed="all"))) == [6 * MINUTE_MS, 7 * MINUTE_MS]


def test_two_versions_during_a_deploy_do_not_keep_each_other_from_firing(broker, at):
    old, new = redeclared(broker, every(minutes=2)), redeclared(broker, every(minutes=3))
    fired = [at(minute * MINUTE_MS + 20 * step, old, new) for minute in range(13) for step in range(3)]

    assert [slots[0] // MINUTE_MS for slots in fired if slots] == [2, 3, 4, 6, 8, 9, 10, 12]


# -- trouble


def test_a_client_that_cannot_be_told_keeps_no_other_from_starting(broker, at, caplog):
    def whose(**kwargs):
        raise RuntimeError("no such account")

    declare(every(minutes=1), client=whose)
    task(schedule=every(minutes=1))(other)
    dispatcher = Dispatcher(broker, [QUEUE])
    at(0, dispatcher)

    assert at(MINUTE_MS, dispatcher) == [MINUTE_MS]
    assert "report: its job could not be created" in caplog.text


def test_redis_away_is_for_the_loop_to_wait_out():
    declare(every(minutes=1))
    with override_settings(RTQ={"REDIS": UNREACHABLE}), pytest.raises(BrokerUnavailable):
        Dispatcher(get_broker(), [QUEUE]).fire_due()


def test_a_full_server_starts_it_later_and_hinders_nothing_else(redis, broker, at, clock):
    declare(every(minutes=1))
    scheduler = Scheduler(broker, [QUEUE])
    look(scheduler._dispatcher)
    clock.now_ms += MINUTE_MS
    scheduler._dispatcher._next_query_at = 0.0

    with redis.full_memory(), pytest.raises(BrokerFull):
        scheduler.tick()
    scheduler.tick()

    assert len(claim_all(broker)) == 1
    scheduler.stop()


def test_what_is_declared_no_more_is_forgotten_after_months(redis, broker, at):
    gone = redeclared(broker, every(minutes=1, name="gone"))
    at(0, gone)
    rest = redeclared(broker, every(minutes=1, name="rest"))

    at(OUTDATED_MS, rest)
    assert set(broker.schedules.states([QUEUE])[1][QUEUE]) == {"gone", "rest"}
    at(OUTDATED_MS + 1, rest)
    assert set(broker.schedules.states([QUEUE])[1][QUEUE]) == {"rest"}


def test_a_job_that_starts_by_itself_is_said_to_be_enqueued(broker, at, clock):
    said = []
    declare(every(minutes=1))
    timetables = [Dispatcher(broker, [QUEUE]) for _ in range(2)]

    with receiving(lambda job_ids, queue, task, **_: said.append((job_ids, queue, task)), signals.job_enqueued):
        at(0, *timetables)
        clock.now_ms += MINUTE_MS
        for dispatcher in timetables:
            look(dispatcher)

    assert said == [(claim_all(broker), QUEUE, f"{__name__}.report")]
