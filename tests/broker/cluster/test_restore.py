"""The same on a master of a Cluster, which has our slot and no other."""

from tests.broker.test_restore import *  # noqa: F403
