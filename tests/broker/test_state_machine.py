"""Random verbs: after each of them all keys in Redis are those of the model (I1-I13)."""

import os

import pytest

from django_rtq.broker.broker import Broker
from tests.broker.model.parallel_run import ParallelRun, parallel_config
from tests.broker.model.random_verbs import run_randomly
from tests.support.jobs import new_job

EXAMPLES = "RTQ_TEST_EXAMPLES"


@pytest.fixture
def broker(redis, redis_server):
    broker = Broker(parallel_config(redis_server.url))
    yield broker
    broker.close()


def test_whatever_happens_all_keys_are_as_the_model_says(redis, broker):
    # Who says how many runs there are to be wants others than the last time.
    examples = os.environ.get(EXAMPLES)
    run_randomly(redis, broker, examples=int(examples or 80), derandomize=not examples)


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
