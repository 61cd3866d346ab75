"""What a process is when it is forked."""

import os
import signal
import socket

import pytest

from django_rtq.core.worker.options import EXIT_DONE, EXIT_FAILED
from django_rtq.core.worker.supervisor import process_pool


@pytest.fixture(autouse=True)
def kept_databases(monkeypatch):
    """The connections of the tests."""
    monkeypatch.setattr(process_pool, "close_database_connections", lambda: None)


def exit_code(life):
    """Of a forked process."""
    pid = process_pool.fork(life, (), dies_by=signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_process_whose_parent_has_died_at_once_does_nothing(monkeypatch):
    assert exit_code(lambda: EXIT_DONE) == EXIT_DONE
    monkeypatch.setattr(os, "getpid", lambda: -1)  # another process is the parent by now

    assert exit_code(lambda: EXIT_DONE) == EXIT_FAILED


def test_signals_of_a_process_do_not_wake_its_parent():
    ends = socket.socketpair()
    with ends[0], ends[1]:
        ends[1].setblocking(False)
        before = signal.set_wakeup_fd(ends[1].fileno())
        try:
            assert exit_code(lambda: signal.set_wakeup_fd(-1) + 1) == 0
        finally:
            signal.set_wakeup_fd(before)
