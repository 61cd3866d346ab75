"""Resident memory of a process."""

import os

from django_rtq.core.worker.memory import memory_bytes


def test_ones_own_memory_is_known():
    assert 1_000_000 < memory_bytes() < 100_000_000_000
    assert memory_bytes(os.getpid()) > 1_000_000


def test_of_a_process_that_is_gone_nothing_is_known():
    assert memory_bytes(2**30) is None
