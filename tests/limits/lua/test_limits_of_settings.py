"""The limits of the settings are stored: by producers for the time before a worker, and by each worker that starts."""

from itertools import count

from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config, get_config
from django_rtq.limits.limit_kinds import Limit
from django_rtq.limits.store import LimitStore, SettingsKeeper
from tests.support.jobs import QUEUE, claim, claimed_job, new_job, queued_job

KEYS = ("{rtq:default}:limits", "{rtq:default}:limit_sources", "{rtq:default}:settings_stamp")
_starts = count(1)


def config_with(version=None, **options):
    return Config(redis=get_config().redis, queues={QUEUE: options}, version=version)


def started_worker(broker, version=None, **options):
    """What a worker with these options of the queue does at its start. Each starts later than those before."""
    config = config_with(version, **options)
    keeper = SettingsKeeper(LimitStore(broker.redis, broker.keys, config), [QUEUE, "low"])
    keeper._started_ms_of_test = next(_starts)
    beat(broker, keeper)
    return keeper


def beat(broker, keeper):
    """What it does with each heartbeat."""
    time, *replies = broker.redis.execute(keeper.reads)
    # Two workers of a test would start in one millisecond.
    seconds, micros = time
    keeper.do([(seconds, int(micros) + 1000 * keeper._started_ms_of_test), *replies], until=0.0)


def most(limits):
    """The limit of the queue that holds; None: none."""
    limit = limits(QUEUE).limits.get("max_running")
    return limit and limit.value


def run_version(redis, version, *, ago=0):
    """Let this version of the project be the latest, reported last so many seconds ago."""
    redis.lpush("{rtq:default}:deploys", f"1 {version}")
    redis.hset("{rtq:default}:versions", version, (redis.time()[0] - ago) * 1000)


def test_workers_store_the_limits_of_the_settings(redis, broker, limits, rtq):
    rtq.clients["own"].limit(QUEUE, max_running=9)
    options = {
        "max_running": 50,
        "client": {"max_running": 2},
        "clients": {"big": {"max_running": 20}, "own": {"max_running": 1}},
    }

    started_worker(broker, **options)

    found = limits(QUEUE)
    assert found.limits == {"max_running": Limit(value=50, is_from_settings=True)}
    assert (found.default["max_running"].value, found.clients["big"].limits["max_running"].value) == (2, 20)
    assert (
        found.clients["own"].limits["max_running"].value,
        found.clients["own"].limits["max_running"].is_from_settings,
    ) == (9, False)
    rtq.clients["own"].limit(QUEUE, max_running="settings")
    assert limits(QUEUE).clients["own"].limits["max_running"].value == 1

    started_worker(broker)
    assert not redis.exists(*KEYS[:2])


def test_a_start_with_the_same_settings_does_not_count_again(redis, broker):
    started_worker(broker, max_running=5)
    redis.hset("{rtq:default}:running_counts", "queue", 3)

    started_worker(broker, max_running=5)

    assert redis.hget("{rtq:default}:running_counts", "queue") == b"3"


def test_nothing_is_stored_of_a_queue_without_limits(redis, broker):
    beat(broker, started_worker(broker))

    assert not redis.exists(*KEYS)


def test_blocked_clients_go_on_with_a_higher_limit(broker):
    started_worker(broker, client={"max_running": 1})
    claimed_job(broker, client="x")
    waiting = queued_job(broker, client="x")
    assert not claim(broker, 5)

    started_worker(broker, client={"max_running": 2})

    assert list(claim(broker, 5)) == [waiting.id]


def test_heartbeats_write_nothing_while_the_limits_are_there(redis, broker):
    worker = started_worker(broker, max_running=50)
    calls = redis.info("commandstats")["cmdstat_evalsha"]["calls"]

    beat(broker, worker)

    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] == calls


def test_heartbeats_of_workers_whose_settings_do_not_hold_read_only_what_all_do(redis, broker):
    alike, other = started_worker(broker, max_running=2), started_worker(broker, max_running=1)
    started_worker(broker, max_running=2)
    redis.config_resetstat()

    beat(broker, alike)
    beat(broker, other)

    reads = redis.info("commandstats")
    assert "cmdstat_get" not in reads
    assert reads["cmdstat_hgetall"]["calls"] == 2
    assert (alike.overruled, other.overruled) == ([], [QUEUE])


def test_a_heartbeat_stores_limits_that_are_gone(redis, broker, limits):
    worker = started_worker(broker, max_running=1)
    redis.flushdb()

    beat(broker, worker)

    assert most(limits) == 1


def test_the_worker_that_started_last_decides_for_good(redis, broker, limits):
    old, new = started_worker(broker), started_worker(broker, max_running=1)
    beat(broker, old)
    beat(broker, new)
    assert (most(limits), old.overruled, new.overruled) == (1, [QUEUE], [])

    redis.flushdb()
    beat(broker, old)
    beat(broker, new)
    beat(broker, old)

    assert (most(limits), old.overruled, new.overruled) == (1, [QUEUE], [])


def test_workers_with_the_same_settings_do_not_overrule_each_other(broker):
    first, second = started_worker(broker, max_running=1), started_worker(broker, max_running=1)
    beat(broker, first)

    assert first.overruled == second.overruled == []


def test_the_latest_version_of_the_project_decides(redis, broker, limits):
    run_version(redis, "1")
    old = started_worker(broker, "1", max_running=1)
    new = started_worker(broker, "2", max_running=2)
    assert (most(limits), new.overruled) == (1, [QUEUE])  # it has not reported its version yet

    run_version(redis, "2")
    beat(broker, new)
    beat(broker, old)
    assert (most(limits), old.overruled, new.overruled) == (2, [QUEUE], [])

    restarted = started_worker(broker, "1", max_running=1)
    assert (most(limits), restarted.overruled) == (2, [QUEUE])


def test_a_version_that_nobody_runs_any_more_decides_nothing(redis, broker, limits):
    run_version(redis, "2", ago=3600)
    started_worker(broker, "2", max_running=2)

    started_worker(broker, max_running=1)

    assert most(limits) == 1


def test_a_producer_stores_the_limits_if_nobody_has(redis, broker, limits):
    producer = WorkerBroker(config_with(max_waiting=1, max_running=7))
    assert producer.enqueue(QUEUE, [new_job()]) == ["ok"]
    assert producer.enqueue(QUEUE, [new_job()]) == ["full queue 1 1"]
    assert most(limits) == 7
    producer.close()

    worker = started_worker(broker, max_running=2)
    later = WorkerBroker(config_with(max_running=7))
    later.register_queues([QUEUE])
    later.close()

    assert (most(limits), worker.overruled) == (2, [])


def test_a_producer_does_not_store_limits_that_a_worker_has_removed(broker, limits):
    started_worker(broker, max_running=1)
    started_worker(broker)

    producer = WorkerBroker(config_with(max_running=7))
    producer.register_queues([QUEUE])
    producer.close()

    assert most(limits) is None


def test_limits_that_others_store_between_reading_and_writing_are_not_overwritten(redis, broker, limits):
    started_worker(broker, max_running=1)
    arguments = ("read before", "5 d ", "settings:queue", "max_running=9")
    call = SCRIPTS["set_limits"].call(broker.keys.of(QUEUE), arguments)

    assert broker.redis.execute_one(call) == -1
    assert most(limits) == 1


def test_whose_limits_held_is_forgotten(redis, broker):
    broker.register_queues([QUEUE])
    started_worker(broker, max_running=1)
    started_worker(broker)
    assert redis.exists("{rtq:default}:settings_stamp")

    assert broker.forget(QUEUE) == "forgotten"

    assert not redis.exists("{rtq:default}:settings_stamp")
