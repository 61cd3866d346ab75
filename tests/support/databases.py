"""Empty databases with the tables of django_rtq, for tests whose transactions and processes are real."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import ConnectionHandler


@dataclass(frozen=True)
class Database:
    """A database that is the default one, in this process and in workers with `environment`."""

    settings: dict[str, Any]

    @property
    def vendor(self):
        """ "sqlite", "postgresql" or "mysql"."""
        return connection.vendor

    @property
    def environment(self):
        """For rtq_worker(environment=…)."""
        return {"RTQ_TEST_DATABASE": json.dumps(self.settings)}

    def query(self, sql, *parameters):
        """The rows of a statement; none if it returns no rows."""
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return list(cursor.fetchall()) if cursor.description else []


def sqlite_settings(path):
    """For DATABASES: a file, with several writers."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;",
        },
    }


@contextmanager
def as_default(settings):
    """Use a database in place of the default one, in all threads, with the tables of django_rtq."""
    before, theirs = connections.settings["default"], connections["default"]
    connections.settings["default"] = ConnectionHandler({"default": settings}).settings["default"]
    del connections["default"]
    try:
        migrate()
        yield Database(settings)
    finally:
        connections["default"].close()
        connections.settings["default"] = before
        connections["default"] = theirs


def migrate():
    """Create the tables of django_rtq. Without the signals of `migrate`, which need the tables of other apps."""
    executor = MigrationExecutor(connection)
    executor.migrate([leaf for leaf in executor.loader.graph.leaf_nodes() if leaf[0] == "django_rtq"])
