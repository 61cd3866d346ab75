"""Workers: those of the tests of workers."""

from tests.core.worker.conftest import (  # noqa: F401
    client,
    databases_of_the_session,
    fragile,
    journal,
    rtq_worker,
    session,
    stale,
    start,
)
