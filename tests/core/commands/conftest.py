"""Workers: those of the tests of workers."""

from tests.core.worker.conftest import databases_of_the_session, journal, rtq_worker  # noqa: F401
