"""What the tests of this folder share."""

import pytest

from tests.testing import tasks


@pytest.fixture
def ran():
    """What the tasks did, in order."""
    tasks.ran.clear()
    return tasks.ran
