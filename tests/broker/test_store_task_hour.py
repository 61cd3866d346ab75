"""The counters of tasks are kept when the hour is over."""

import pytest

from django_rtq.broker import maintenance
from django_rtq.broker.histogram import bucket_of
from django_rtq.inspector.metrics.reader import TaskMetrics
from django_rtq.scheduler.scheduler import Scheduler
from tests.broker.test_task_metrics import tell
from tests.support.jobs import QUEUE
from tests.support.single_steps import store_task_hours
from tests.support.snapshots import snapshot


@pytest.fixture
def count(redis, keys):
    """Sets counters of tasks in some hour."""
    return lambda hour, mapping: redis.hset(keys.tasks + str(hour).encode(), mapping=mapping)


@pytest.fixture
def kept(redis, keys):
    """What is kept of an hour."""

    def read(hour):
        found = {}
        for name, lines in redis.hgetall(keys.task_days + str(hour // 24).encode()).items():
            said = [line.partition(" ") for line in lines.decode().split("\n")]
            assert [int(each) for each, _, _ in said] == sorted({int(each) for each, _, _ in said})
            found |= {name.decode(): sorted(rest.split(" ")) for each, _, rest in said if int(each) == hour}
        return found

    return read


@pytest.fixture
def keep(redis, keys):
    """Stores what was counted of a task in some hour."""

    def store(hour, said):
        key = keys.task_days + str(hour // 24).encode()
        lines = redis.hget(key, "ship")
        redis.hset(key, "ship", f"{lines.decode()}\n{hour} {said}" if lines else f"{hour} {said}")

    return store


def test_each_task_of_a_past_hour_is_kept_in_one_text(redis, broker, keys, hour, count, kept):
    count(hour - 1, {"done ship": 3, "r12 ship": 2, "w-5 ship": 7, "run_us ship": 10, "wait_ms ship": 9, "dead a b": 1})
    count(hour, {"done ship": 100})

    store_task_hours(broker)

    assert kept(hour - 1) == {"ship": sorted("done 3 r12 2 w-5 7".split()), "a b": ["1", "dead"]}
    assert kept(hour) == {}
    assert 31 * 86_400 < redis.ttl(keys.task_days + str((hour - 1) // 24).encode()) <= 32 * 86_400


def test_twelve_hours_are_stored_in_one_go(redis, broker, keys, hour, count, kept):
    for back in (40, 3, 1):
        count(hour - back, {"done ship": back})

    left = [broker.maintenance.task_days.store([QUEUE, "low"]) for _ in range(6)]

    assert left[:4] == [0.0] * 4
    assert 0 < left[5] <= 3600
    assert [kept(hour - back) for back in (40, 3, 1)] == [{"ship": sorted(["done", str(back)])} for back in (40, 3, 1)]
    assert len(redis.keys(keys.task_days + b"*")) == len({(hour - back) // 24 for back in (40, 3, 1)})
    assert int(redis.hget(broker.keys.of("low").clock, "tasks_stored")) in (hour, hour + 1)


def test_repeated_it_changes_nothing(redis, broker, keys, hour, count):
    count(hour - 1, {"done ship": 3})
    store_task_hours(broker)
    before = snapshot(redis)

    store_task_hours(broker)
    redis.hset(keys.clock, "tasks_stored", hour - 1)  # as after a torn log
    store_task_hours(broker)

    assert snapshot(redis) == before


@pytest.mark.parametrize("back", [1, 2, 3])
def test_an_hour_that_is_stored_again_replaces_its_line(redis, broker, keys, hour, count, kept, back):
    count(hour - 4, {"done mail": 1})
    for each in (1, 2, 3):
        count(hour - each, {"done ship": each})
    store_task_hours(broker)

    count(hour - back, {"done ship": 10})
    redis.hset(keys.clock, "tasks_stored", hour - back)
    store_task_hours(broker)

    expected = {1: 1, 2: 2, 3: 3, back: 10}
    for each, number in expected.items():
        assert kept(hour - each)["ship"] == sorted(["done", str(number)])
    assert kept(hour - 4) == {"mail": ["1", "done"]}


def test_of_too_many_tasks_those_with_most_runs_are_kept(broker, hour, count, kept, monkeypatch):
    monkeypatch.setattr(maintenance, "MAX_TASKS", 3)
    count(hour - 1, {f"{kind} task{n}": n for n in range(10) for kind in ("done", "failed", "retried")})

    store_task_hours(broker)

    assert sorted(kept(hour - 1)) == ["task7", "task8", "task9"]


def test_many_tasks_are_stored_with_several_calls(broker, hour, count, kept):
    count(hour - 1, {f"done task{n}": n for n in range(120)})

    store_task_hours(broker)

    assert kept(hour - 1) == {f"task{n}": sorted(["done", str(n)]) for n in range(120)}


def test_after_the_clock_was_put_back_hours_are_stored_again(redis, broker, keys, hour, count, kept):
    redis.hset(keys.clock, "tasks_stored", hour + 5)
    count(hour - 1, {"done ship": 1})
    store_task_hours(broker)
    assert int(redis.hget(keys.clock, "tasks_stored")) in (hour, hour + 1)


def test_hours_that_have_expired_are_not_looked_for(redis, broker, keys, hour, count):
    redis.hset(keys.clock, "tasks_stored", hour - 200)
    count(hour - 60, {"done ship": 3})

    store_task_hours(broker)
    assert not redis.keys(keys.task_days + b"*")


def test_a_scheduler_does_it(redis, broker, keys, hour, count, kept):
    for back in (1, 2, 3):
        count(hour - back, {"done ship": back})
    scheduler = Scheduler(broker, [QUEUE])
    for _ in range(8):
        scheduler.tick()
    scheduler.stop()

    assert [kept(hour - back) for back in (1, 2, 3)] == [{"ship": sorted(["done", str(back)])} for back in (1, 2, 3)]


def test_a_task_looks_the_same_before_and_after(broker, inspector, hour, count):
    bucket = bucket_of(2.0)
    for back in (1, 5, 11):
        count(hour - back, {"done ship": back, "failed ship": 1, f"r{bucket} ship": back + 1, "done my ship": 4})
    tell(broker, "done ship", 7)
    before = inspector.tasks.get("ship", 24)

    store_task_hours(broker)

    found = inspector.tasks.get("ship", 24)
    assert (found.steps, found.total, found.runs) == (before.steps, before.total, before.runs)
    assert found.total == TaskMetrics(done=24, failed=3, runs={bucket: 20})


def test_hours_are_joined_to_steps_and_compared_with_those_before(redis, broker, inspector, keys, hour, keep):
    redis.hset(keys.clock, "tasks_stored", hour)
    for number, back in enumerate((2, 160, 168 + 2, 168 + 160, 600)):
        keep(hour - back, f"done {10**number} r12 1")
    broker.register_queues([QUEUE])

    week = inspector.tasks.get("ship", 168, step=2, compare=True)
    month = inspector.tasks.get("ship", 720, step=12)

    present = hour // 2
    done = {step.begins_at.timestamp() // 7200 - present: step.metrics.done for step in week.steps if step.metrics.done}
    before = {step.begins_at.timestamp() // 7200 - present: step.metrics.done for step in week.before}
    assert done == {(hour - back) // 2 - present: number for back, number in ((2, 1), (160, 10))}
    assert {place + 84: number for place, number in before.items() if number} == {
        place: 100 * number for place, number in done.items()
    }
    assert (len(week.steps), len(week.before), week.total.done) == (85, 85, 11)
    assert (len(month.steps), month.before, month.total.done) == (61, [], 11111)


def test_without_a_scheduler_twelve_hours_are_shown(broker, inspector, hour, count):
    for back in (1, 12, 13):
        count(hour - back, {"done ship": 10**back})
    broker.register_queues([QUEUE])

    assert inspector.tasks.get("ship", 24).total.done in (10 + 10**12, 10)  # the next hour may have begun
