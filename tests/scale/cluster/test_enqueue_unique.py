"""The same on a master of a Cluster, which has our slot and no other."""

from tests.core.broker.test_enqueue_unique import *  # noqa: F403
