"""Random verbs: after each of them all keys in Redis are those of the model (I1-I13)."""

import os

import pytest

from django_rtq.broker.broker import Broker
from tests.broker.model.parallel_run import parallel_config
from tests.broker.model.random_verbs import run_randomly

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
