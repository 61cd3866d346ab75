"""`manage.py check --database` reports tables that are missing."""

import sys

from django.core.checks import WARNING
from django.test import override_settings

from django_rtq.databases.checks import check_tables
from tests.support.redis_server import UNREACHABLE


def test_missing_tables_are_a_warning(database):
    with override_settings(RTQ={"REDIS": UNREACHABLE, "OUTBOX": True}):
        assert check_tables(databases=["default"]) == []
        database.query("DELETE FROM django_migrations WHERE app = 'django_rtq'")
        (message,) = check_tables(databases=["default"])
        assert check_tables() == check_tables(databases=[]) == []

    assert (message.level, message.id) == (WARNING, "rtq.W005")
    assert message.hint == "Run: manage.py migrate django_rtq --database default"


def test_migrate_is_not_told_to_migrate(database, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["manage.py", "migrate"])
    with override_settings(RTQ={"REDIS": UNREACHABLE, "OUTBOX": True}):
        database.query("DELETE FROM django_migrations WHERE app = 'django_rtq'")
        assert check_tables(databases=["default"]) == []


def test_tables_that_nothing_needs_are_not_looked_for(database, no_tasks):
    database.query("DELETE FROM django_migrations WHERE app = 'django_rtq'")
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        assert check_tables(databases=["default"]) == []
