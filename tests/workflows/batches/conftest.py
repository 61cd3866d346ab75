"""What runs jobs: that of the tests of processes."""

from tests.core.worker.process.running.conftest import make  # noqa: F401
