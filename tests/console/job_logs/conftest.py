"""Workers: those of the tests of workers, and a run that logs."""

import pytest

from tests.core.worker.claimed_runs import claim, enqueue
from tests.core.worker.conftest import *  # noqa: F403


@pytest.fixture
def run(broker, session):
    """What the session claimed."""
    enqueue(broker)
    (run,) = claim(session)
    return run
