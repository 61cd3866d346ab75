"""Workers: those of the tests of workers."""

from tests.worker.conftest import client, databases_of_the_session, fragile, journal, rtq_worker, session, stale, start  # noqa: F401
