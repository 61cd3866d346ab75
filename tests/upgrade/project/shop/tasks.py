"""Tasks, which note in a file what runs. Files in the folder of the test open gates."""

import logging
import os
import signal
import time
from contextlib import suppress

from django.conf import settings
from django.db import transaction

from django_rtq import Retry, constant, current_job, exponential, task


def note(word):
    """Add a line to the journal; no other process can come between."""
    job = current_job()
    line = f"{time.monotonic_ns()} {job.job_id} {job.queue_name} {word} {job.task_name.rpartition('.')[2]}"
    file = os.open(settings.FOLDER / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def is_open(gate):
    return (settings.FOLDER / gate).exists()


def wait_for(gate):
    while not is_open(gate):
        time.sleep(0.01)


@task(client=lambda name, client="": client)
def count(name, client=""):
    note("start")
    logging.getLogger("shop").info("counted %s", name)
    note("end")
    return [name, client]


@task(client=lambda client, seconds: client)
def work(client, seconds):
    note("start")
    time.sleep(seconds)
    note("end")


@task
async def awork(name):
    note("start")
    note("end")
    return name


@task
def echo(**values):
    note("start")
    note("end")
    return values


@task(max_attempts=5, backoff=constant(0.05))
def second_time(name):
    note("start")
    if current_job().attempt == 1:
        raise Retry("not yet", after=0.05)
    note("end")
    return name


@task(max_attempts=5, backoff=exponential(base=3600, cap=7200))
def mended_later(name):
    if not is_open("mended"):
        raise ValueError("this is broken")
    note("end")
    return name


@task(max_attempts=1)
def mended_by_hand(name):
    if not is_open("mended"):
        raise ValueError("this is broken")
    note("end")
    return name


@task(unique=True)
def once(name):
    note("end")
    return name


@task(queue_name="crash")
def hang(name):
    note("start")
    wait_for("mended")
    note("end")
    return name


with suppress(ImportError):  # before Django 6
    from django.tasks import task as django_task

    @django_task
    def receipt(number):
        return number + 1


@task(queue_name="crash", exactly_once=True)
def pay(name):
    """Kills its worker right after the commit."""
    note("start")
    if not is_open("mended"):
        wait_for("hangs")
        transaction.on_commit(lambda: os.killpg(os.getpgrp(), signal.SIGKILL))
    return name
