"""Tasks with exactly_once, which write into the table `effects` of a test. For workers that load this module."""

import os
import signal
import time
from functools import partial

from django.db import connection, transaction

from django_rtq import task
from tests.app import journal
from tests.app.tasks import AT_ONCE, note, told, wait_for

QUEUE = "once"  # no other test has schedules in it
CREATE_TABLE = "CREATE TABLE effects (name varchar(50) NOT NULL)"


def write_effect(name):
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effects (name) VALUES (%s)", [name])


def die():
    """As if the machine were switched off."""
    os.kill(os.getpid(), signal.SIGKILL)


@task(exactly_once=True, queue_name=QUEUE, backoff=AT_ONCE, takes_context=True, max_crashes=50)
def effect(context, name, deaths=()):
    """Dies on the lines that `deaths` names: in its first run before the commit, or after the commit."""
    with told(str(name)):
        write_effect(str(name))
        if "after" in deaths:
            transaction.on_commit(die)
        if "before" in deaths and context.attempt == 1:
            die()
    return f"{name} is done"


@task(exactly_once=True, queue_name=QUEUE, backoff=AT_ONCE)
def fail(name, times):
    """Writes an effect and fails, so many times; then it succeeds."""
    with told(name):
        write_effect(name)
        if len([e for e in journal.read(os.environ[journal.FILE]) if e.word == "start"]) <= times:
            raise ValueError(name)


@task(exactly_once=True, queue_name=QUEUE, backoff=AT_ONCE)
def hang(name):
    """Writes an effect, and never ends."""
    with told(name):
        write_effect(name)
        while True:
            time.sleep(0.005)


@task(exactly_once=True, queue_name=QUEUE, backoff=AT_ONCE)
def hang_after_commit(name):
    """Writes an effect, and never ends after its commit."""
    with told(name):
        write_effect(name)
        transaction.on_commit(partial(time.sleep, 3600))
    return f"{name} is done"


@task(exactly_once=True, queue_name=QUEUE, backoff=AT_ONCE)
def wait(name, gate):
    """Writes an effect, and waits with its transaction open."""
    with told(name):
        write_effect(name)
        wait_for(gate)


@task(exactly_once=True, queue_name=QUEUE, backoff=AT_ONCE)
def collide(name):
    """Breaks a constraint of a table of its own."""
    with told(name):
        write_effect(name)
        write_effect(None)


@task(exactly_once=True, queue_name=QUEUE, backoff=AT_ONCE)
def spawn(name):
    """Enqueues a job, and dies after its commit, before it could be sent to Redis."""
    with told(name):
        write_effect(name)
        transaction.on_commit(die)
        note.using(queue_name=QUEUE).delay(f"child of {name}")
