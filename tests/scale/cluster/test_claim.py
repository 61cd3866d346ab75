"""The same on a master of a Cluster, which has our slot and no other."""

from tests.core.broker.test_claim import *  # noqa: F403
