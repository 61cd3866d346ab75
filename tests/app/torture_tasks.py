"""Jobs of the torture: each tells whose child ran it."""

import os
import time

from django_rtq import task
from tests.app.journal import write
from tests.app.tasks import AT_ONCE, told

LIVES_ON = {"backoff": AT_ONCE, "takes_context": True, "max_crashes": 1000}


def run(context, name, seconds=0.0):
    """In short steps, so that it can be stopped."""
    with told(f"{name} {os.getppid()} {context.attempt}"):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            context.progress(left, seconds, name)
            time.sleep(0.005)


@task(**LIVES_ON)
def endure(context, name, seconds):
    """Long enough to be asked to stop."""
    run(context, name, seconds)


@task(backoff=AT_ONCE, takes_context=True, max_crashes=0, max_attempts=1)
def once(context, name, seconds=0.0):
    """Runs once, or not at all."""
    run(context, name, seconds)


@task(**LIVES_ON, unique=["key"])
def alone(context, key, name, seconds):
    run(context, name, seconds)


@task(**LIVES_ON, unique=["key"], unique_on_conflict="replace")
def newest(context, key, name, seconds):
    run(context, name, seconds)


@task(**LIVES_ON, unique=["key"], unique_on_conflict="rerun")
def afresh(context, key, name, seconds):
    run(context, name, seconds)


@task(queue_name="ticks", backoff=AT_ONCE)
def tick():
    write("tick", str(os.getppid()))
