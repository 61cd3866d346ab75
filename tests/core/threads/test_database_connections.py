"""Database connections are closed after code of the project has run."""

from contextlib import contextmanager

import pytest
from django.db import connection, connections

from django_rtq.core import threads
from django_rtq.core.threads import Loop
from tests.support.waiting import PATIENCE, start_thread, wait_until


def in_thread(act):
    """What a thread of its own makes of it: its connections are its own, too."""
    answers = []
    start_thread(lambda: answers.append(act())).join(PATIENCE)
    (answer,) = answers
    return answer


def open_connections():
    return [each for each in connections.all(initialized_only=True) if each.connection is not None]


opened = []  # Django does not close a database in memory, and Python warns of one that nobody closes


@contextmanager
def unblocked(blocker):
    """Threads may ask the database."""
    try:
        with blocker.unblock():
            yield
    finally:
        while opened:
            opened.pop().close()


@pytest.fixture
def database(django_db_blocker):
    """Threads may ask the database."""
    with unblocked(django_db_blocker):
        yield


def query():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    opened.append(connection.connection)


def test_what_a_thread_has_opened_is_closed(database):
    def act():
        query()
        before = open_connections()
        threads.close_database_connections()
        return len(before), open_connections()

    assert in_thread(act) == (1, [])  # a database in memory stays open, but nobody has it any more


def test_it_can_be_opened_again(database):
    def act():
        for _ in range(2):
            query()
            threads.close_database_connections()
        return open_connections()

    assert in_thread(act) == []


def test_a_transaction_that_was_left_open_is_not_met_again(database):
    def act():
        from django.db import transaction

        transaction.atomic().__enter__()
        query()
        threads.close_database_connections()
        return connection.in_atomic_block

    assert in_thread(act) is False


def test_a_connection_that_cannot_be_closed_is_dropped(database, caplog):
    def act():
        query()
        ours, kept = connections["default"], connections["default"].connection

        def fail():
            raise OSError("the server is gone")

        ours.close = fail
        threads.close_database_connections()
        del ours.close
        kept.close()
        return open_connections()

    assert in_thread(act) == []
    assert "the connection to database 'default' could not be closed" in caplog.text


class Asking(Loop):
    """Asks the database in each tick; the second one fails."""

    name = "asking"

    def __init__(self):
        super().__init__()
        self.seen = []

    def tick(self):
        self.seen.append(len(open_connections()))
        query()
        if len(self.seen) == 2:
            raise ValueError("a mistake")
        return 0.0

    def wait(self, seconds):
        self.seen.append(len(open_connections()))


def test_a_loop_has_no_connection_between_its_ticks(database):
    loop = Asking()
    loop.start()
    wait_until(lambda: len(loop.seen) > 6)
    loop.stop()

    assert set(loop.seen) == {0}


def test_pools_are_closed(monkeypatch):
    closed = []

    class Pooled:
        alias = "pooled"

        def close_pool(self):
            closed.append(self.alias)
            raise OSError("the server is gone")

    settings = {"default": {"OPTIONS": {"timeout": 20}}, "plain": {}, "pooled": {"OPTIONS": {"pool": True}}}

    class Handler(dict):
        pass

    handler = Handler(pooled=Pooled())
    handler.settings = settings
    monkeypatch.setattr(threads, "connections", handler)
    threads.close_connection_pools()

    assert closed == ["pooled"]
