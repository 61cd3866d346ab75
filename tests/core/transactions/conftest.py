"""Databases with transactions that really commit."""

import pytest
from django.conf import settings
from django.db import connections
from django.test import override_settings

from django_rtq.core.broker.brokers import close_brokers
from django_rtq.core.conf.config import get_config
from tests.support.apps import readers_of


@pytest.fixture
def other(transactional_db, tmp_path):
    """The alias of a second database, which is empty."""
    options = {**connections.databases["default"], "NAME": str(tmp_path / "other.sqlite3"), "OPTIONS": {}}
    connections.databases["other"] = options
    connections["other"].connect()  # ensure_connection() is patched: tests name their databases beforehand
    yield "other"
    connections["other"].close()
    del connections["other"], connections.databases["other"]


@pytest.fixture
def with_options(rtq_settings):
    """Sets options of RTQ for the test, beside those of its Redis."""
    entered = []

    def enter(**options):
        close_brokers()
        override = override_settings(RTQ={**settings.RTQ, **options})
        override.enable()
        entered.append(override)
        get_config()

    yield enter
    close_brokers()
    for override in reversed(entered):
        override.disable()


@pytest.fixture
def names(readers):
    """Reads the first arguments of the waiting jobs, in their order."""
    return lambda queue="default": [job.args[0] for job in readers_of().search([(queue, "queued")]).page().jobs]
