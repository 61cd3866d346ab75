"""Random verbs: after each of them all keys in Redis are those of the model (I1-I13)."""

import pytest

from django_rtq.core.broker.worker_broker import WorkerBroker
from tests.protocol.model.parallel_run import ParallelRun, parallel_config
from tests.protocol.model.random_verbs import run_randomly
from tests.support.jobs import new_job
from tests.support.mutant import Mutant, mutated
from tests.support.nightly import IS_NIGHTLY

# What limits the queue has when the random verbs begin. They change these, too.
BEGINNINGS = {
    "no_limits": {},
    "limits": {"settings:queue": "max_running=4", "settings:clients": "max_running=2 rate=2/1000 max_waiting=6"},
    "weights": {"settings:client:acme": "weight=3", "settings:clients": "weight=2"},
    "times": {"settings:queue": "fair_by=seconds", "settings:client:acme": "weight=2"},
}


# As for many workers: all of them have a hash of runners, and it takes some heartbeats until it is ready.
AT_ONCE = Mutant("for_few", "lib/runners", "AT_ONCE, LOOKUPS = 100, 50, 50, 20", "AT_ONCE, LOOKUPS = -1, -1, 1, 2")


@pytest.fixture
def broker(redis, redis_server):
    broker = WorkerBroker(parallel_config(redis_server.url))
    yield broker
    broker.close()


@pytest.mark.parametrize(
    "beginning", [pytest.param(name, marks=() if name == "limits" else pytest.mark.long) for name in BEGINNINGS]
)
def test_whatever_happens_all_keys_are_as_the_model_says(redis, broker, beginning):
    place = list(BEGINNINGS).index(beginning)
    if IS_NIGHTLY:  # many more, and others each night
        run_randomly(redis, broker, BEGINNINGS[beginning], examples=80)
    else:
        run_randomly(redis, broker, BEGINNINGS[beginning], examples=6, seeded_by=place)


@pytest.mark.long
def test_so_they_are_in_a_queue_of_many_workers(redis, redis_server):
    """Whose hash of runners never names another worker than the processing lists do."""
    with mutated(AT_ONCE):
        broker = WorkerBroker(parallel_config(redis_server.url))
        run_randomly(redis, broker, examples=6, seeded_by=1)
        broker.close()


def test_a_lost_wake_up_is_noticed_even_if_the_model_has_lost_it_too(redis, broker):
    parallel = ParallelRun(redis, broker)
    parallel.sign_on("w0")
    parallel.enqueue("mail", [new_job("a", client="x"), new_job("b", client="y")])
    redis.delete(broker.keys.of("mail").work_signal)
    parallel.models["mail"].work_signal = False

    with pytest.raises(AssertionError, match="nobody is woken for"):
        parallel.check()

    parallel.change_limits("mail", {"queue": "max_running=1"})
    parallel.claim("w0", ("mail",))
    parallel.check()  # the other may not start
