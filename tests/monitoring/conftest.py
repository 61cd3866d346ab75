"""Tests with real workers."""

from tests.admin.conftest import round_trips  # noqa: F401
from tests.worker.conftest import databases_of_the_session, journal, rtq_worker  # noqa: F401
