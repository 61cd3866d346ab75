"""The same on a master of a Cluster, which has our slot and no other: every script, and what gets lost on the way."""

# ruff: noqa: F401
from tests.protocol.test_repetition import (
    test_sent_twice_it_does_no_more_than_once,
    test_what_a_lost_reply_had_claimed_is_written_down,
)
