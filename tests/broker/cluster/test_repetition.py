"""Every script, and what may get lost on the way, on a master of a Cluster that has our slot and no other."""

from tests.broker.test_repetition import *  # noqa: F403
