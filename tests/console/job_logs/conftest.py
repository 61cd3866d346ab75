"""Workers: those of the tests of workers, and a run that logs."""

import pytest

from tests.core.worker.claimed_runs import claim_new
from tests.core.worker.conftest import *  # noqa: F403


@pytest.fixture
def run(broker, session):
    """What the session claimed."""
    (run,) = claim_new(broker, session)
    return run
