"""What the tests of this folder share."""

import pytest

from tests.core.middleware.conftest import middleware  # noqa: F401
from tests.testing import tasks

collect_ignore = ["project"]  # tests of a project, which test_project.py runs


@pytest.fixture
def ran():
    """What the tasks did, in order."""
    tasks.ran.clear()
    return tasks.ran
