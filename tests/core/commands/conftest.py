"""Workers: those of the tests of workers."""

from tests.worker.conftest import databases_of_the_session, journal, rtq_worker  # noqa: F401
