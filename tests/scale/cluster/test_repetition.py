"""The same on a master of a Cluster, which has our slot and no other: every script, and what gets lost on the way."""

from tests.protocol.test_repetition import *  # noqa: F403
