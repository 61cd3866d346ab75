"""Workers for workflows: those of the tests of workers."""

from tests.core.worker.conftest import client, databases_of_the_session, fragile, journal, rtq_worker, start  # noqa: F401
