"""Schedules in the database that change while schedulers run: they take effect everywhere without a restart."""

from dataclasses import replace

import pytest

from django_rtq import Task, every, task
from django_rtq.core.broker.schedule_store import ScheduleStore
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.scheduler.registry import declared_schedules, load_schedules
from django_rtq.core.scheduler.scheduler import Dispatcher, Scheduler
from django_rtq.core.tasks import registry
from django_rtq.core.worker.supervisor.heartbeat import Heartbeat
from tests.support.jobs import QUEUE, claim_all
from tests.support.waiting import wait_until

NOW_MS = 1_699_999_200_000  # a whole hour, long past for the server
MINUTE_MS = 60_000
TASK = f"{__name__}.report"


def report(*args, **kwargs):
    """A function to be made a task."""


def other():
    """Another one."""


@pytest.fixture(autouse=True)
def _task(no_tasks):
    task(report)


@pytest.fixture
def at(broker, monkeypatch):
    """Let timetables look at a clock that shows so many ms later, as a scheduler does after it has asked for news.

    Returns the slots for which jobs wait, in ms from then.
    """
    now, states = {"ms": 0}, ScheduleStore.states
    monkeypatch.setattr(ScheduleStore, "states", lambda *args: (NOW_MS + now["ms"], states(*args)[1]))

    def at(ms, *timetables, asks=True):
        now["ms"] = ms
        for dispatcher in timetables:
            if asks:
                dispatcher._broker.maintain([QUEUE])
            dispatcher._next_query_at = 0.0
            dispatcher.fire_due()
        return [int(job_id[:12], 16) - NOW_MS for job_id in claim_all(broker)]

    return at


def row(**options):
    return {"task": TASK, "args": [], "kwargs": {}, "cron": "", "every": 60, "enabled": True, "since": "1", **options}


@pytest.fixture
def put(broker):
    """Put rows into the plan: put(nightly=row())."""
    return lambda **rows: broker.schedules.update(rows)


def test_rows_come_change_and_go_while_a_timetable_runs(broker, at, put):
    dispatcher = Dispatcher(broker, [QUEUE])
    assert at(0, dispatcher) == []
    put(mine=row())
    assert at(5, dispatcher) == []
    assert at(MINUTE_MS, dispatcher) == [MINUTE_MS]
    put(mine=row(every=120))
    assert at(2 * MINUTE_MS + 1, dispatcher) == []  # begins anew, and has missed nothing
    assert at(4 * MINUTE_MS, dispatcher) == [4 * MINUTE_MS]
    put(mine=None)
    assert at(6 * MINUTE_MS, dispatcher) == []
    assert dispatcher.entries == []


def test_who_did_not_hear_of_a_change_does_not_fire_by_what_was_before(broker, at, put):
    put(mine=row())
    elsewhere = WorkerBroker(broker.config)
    dispatcher = Dispatcher(elsewhere, [QUEUE])
    assert at(0, dispatcher) == []
    assert at(MINUTE_MS, dispatcher, asks=False) == [MINUTE_MS]
    put(mine=row(enabled=False))

    assert elsewhere.schedules.latest_version != broker.schedules.read().version
    assert at(2 * MINUTE_MS, dispatcher, asks=False) == []
    elsewhere.close()


def test_what_redis_has_lost_fires_all_the_same(redis, broker, at, put, caplog):
    put(mine=row(), gone=row())
    broker.schedules.set_enabled("declared", enabled=False)
    dispatcher = Dispatcher(broker, [QUEUE])
    at(0, dispatcher)
    put(gone=None)
    before = broker.schedules.read()
    at(1, dispatcher)
    redis.flushall()

    assert at(MINUTE_MS, dispatcher) == []  # begins anew, like all that Redis had known
    assert at(2 * MINUTE_MS, dispatcher) == [2 * MINUTE_MS]

    assert broker.schedules.read() == before
    assert caplog.messages == ["Redis has lost the schedules of the database and the disabled ones: restoring them"]


def test_what_passed_while_it_was_off_was_not_missed(broker, at, put):
    dispatcher = Dispatcher(broker, [QUEUE])
    put(mine=row(missed="all"))
    at(0, dispatcher)
    put(mine=row(missed="all", enabled=False))
    assert at(3 * MINUTE_MS, dispatcher) == []
    put(mine=row(missed="all", since="2"))

    assert at(5 * MINUTE_MS + 1, dispatcher) == []
    assert at(6 * MINUTE_MS, dispatcher) == [6 * MINUTE_MS]


def test_a_cap_keeps_the_newest_of_what_was_missed(broker, at, put):
    put(mine=row(missed="all", cap=2))
    at(0, Dispatcher(broker, [QUEUE]))

    assert at(5 * MINUTE_MS, Dispatcher(broker, [QUEUE])) == [4 * MINUTE_MS, 5 * MINUTE_MS]


def test_schedules_of_the_code_can_be_switched_off_and_on(broker, at):
    task(schedule=every(minutes=1, name="declared", missed="all"))(other)
    dispatcher = Dispatcher(broker, [QUEUE])
    at(0, dispatcher)
    broker.schedules.set_enabled("declared", enabled=False)
    assert at(3 * MINUTE_MS, dispatcher, Dispatcher(broker, [QUEUE])) == []
    broker.schedules.set_enabled("declared", enabled=True)

    assert at(4 * MINUTE_MS + 1, dispatcher) == []
    assert at(5 * MINUTE_MS, dispatcher) == [5 * MINUTE_MS]


def test_a_row_that_cannot_be_obeyed_is_told_once_and_hinders_no_other(redis, broker, at, put, caplog):
    put(gone=row(task="shop.tasks.gone"), strange=row(args=5), empty={}, mine=row())
    redis.hset("rtq:plan", "row:torn", "{")
    dispatcher = Dispatcher(broker, [QUEUE])
    at(0, dispatcher)
    put(mine=row(client="x"))

    assert at(MINUTE_MS, dispatcher) == [MINUTE_MS]
    told = [record.getMessage().split(" ")[1] for record in caplog.records if "does not fire" in record.getMessage()]
    assert sorted(told) == ["empty", "gone", "strange", "torn"]


def test_a_row_does_not_take_the_place_of_what_is_declared(broker, put):
    task(schedule=every(minutes=1, name="mine"))(other)
    put(mine=row())
    entries, broken = load_schedules(declared_schedules(broker.config), broker.schedules.read())

    assert [entry.source for entry in entries] == ["code"]
    assert broken == {"mine": "a schedule of this name is declared in the code."}


def test_a_scheduler_that_sleeps_is_woken_and_starts_it(redis, broker):
    scheduler = Scheduler(WorkerBroker(broker.config, role="scheduler"), [QUEUE])
    scheduler.start()
    wait_until(lambda: [c for c in redis.client_list() if c["cmd"] == "bzpopmin"])
    broker.schedules.update({"often": row(every=0.1)}, wake=[QUEUE])
    wait_until(lambda: claim_all(broker))
    scheduler.stop()
    scheduler._broker.close()


def test_who_was_not_woken_hears_of_it_with_the_next_heartbeat(redis, broker):
    own = WorkerBroker(replace(broker.config, lease_seconds=3.0), role="scheduler")
    loops = [Heartbeat(own, [QUEUE], list, promotes=True), Scheduler(own, [QUEUE])]
    for loop in loops:
        loop.start()
    wait_until(lambda: [c for c in redis.client_list() if c["cmd"] == "bzpopmin"])
    broker.schedules.update({"often": row(every=0.1)})  # the token went to another, who died
    wait_until(lambda: claim_all(broker))
    for loop in loops:
        loop.stop()
    own.close()


def test_a_row_of_an_internal_task_starts_nothing(broker, at, put, caplog):
    registry.register(Task(func=other, name="inner", internal=True))
    dispatcher = Dispatcher(broker, [QUEUE])
    put(sneaky=row(task="inner", args=[QUEUE, "discard", {}, 10**15]), mine=row())

    assert at(0, dispatcher) == []
    assert at(MINUTE_MS, dispatcher) == [MINUTE_MS]
    assert [entry.name for entry in dispatcher.entries] == ["mine"]
    assert "schedule sneaky is invalid and does not fire: inner is internal" in caplog.text
