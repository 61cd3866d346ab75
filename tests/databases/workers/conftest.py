"""Workers: those of the tests of workers."""

from tests.core.worker.conftest import *  # noqa: F403
