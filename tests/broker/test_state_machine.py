"""Random verbs: after each of them all keys in Redis are those of the model (I1-I13)."""

import pytest

from django_rtq.broker.broker import Broker
from tests.broker.model.parallel_run import ParallelRun, parallel_config
from tests.broker.model.random_verbs import run_randomly
from tests.support.jobs import new_job
from tests.support.nightly import IS_NIGHTLY

# What limits the queue has when the random verbs begin. They change these, too.
BEGINNINGS = {
    "no_limits": {},
    "limits": {"settings:queue": "max_running=4", "settings:clients": "max_running=2 rate=2/1000 max_waiting=6"},
    "weights": {"settings:client:acme": "weight=3", "settings:clients": "weight=2"},
    "times": {"settings:queue": "fair_by=seconds", "settings:client:acme": "weight=2"},
}


@pytest.fixture
def broker(redis, redis_server):
    broker = Broker(parallel_config(redis_server.url))
    yield broker
    broker.close()


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_whatever_happens_all_keys_are_as_the_model_says(redis, broker, beginning):
    place = list(BEGINNINGS).index(beginning)
    if IS_NIGHTLY:  # four times as many, and others each night
        run_randomly(redis, broker, BEGINNINGS[beginning], examples=80)
    else:
        run_randomly(redis, broker, BEGINNINGS[beginning], examples=20, seeded_by=place)


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
