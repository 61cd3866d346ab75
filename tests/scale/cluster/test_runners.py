"""The same on a master of a Cluster, which has our slot and no other: who runs a job where there are many workers."""

from tests.protocol.test_runners import *  # noqa: F403
