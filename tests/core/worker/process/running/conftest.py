"""A runner without Redis."""

import signal

import pytest

from django_rtq.core.conf.config import Config
from django_rtq.core.worker.process.process import runner_class
from django_rtq.core.worker.shared_memory import SharedState
from tests.core.worker.process.running.fake_session import FakeSession


@pytest.fixture
def make():
    """A runner with a session that only records outcomes, and its shared state."""
    runners, before = [], signal.getsignal(signal.SIGALRM)

    def make(slots):
        shared = SharedState(slots)
        session = FakeSession(shared)
        runner = runner_class(slots)(Config(), shared, session)
        runners.append(runner)
        return runner, session, shared

    yield make
    for runner in runners:
        runner.stop()
    signal.signal(signal.SIGALRM, before)
