"""Jobs that log."""

import asyncio
import logging
import os
import signal
import threading
import time

from django_rtq import constant, task
from tests.app import journal

logger = logging.getLogger("tests.shop")
logger.setLevel("INFO")
apart = logging.getLogger("tests.apart")
apart.propagate = False
AT_ONCE = constant(0)


@task(backoff=AT_ONCE)
def say(*lines):
    for line in lines:
        logger.info("%s", line)


@task(backoff=AT_ONCE)
async def asay(*lines):
    for line in lines:
        logger.info(line)
        await asyncio.sleep(0)
    await asyncio.to_thread(logger.info, "in a thread")


@task(backoff=AT_ONCE)
def say_and_wait(name, gate):
    journal.write("start", name)
    logger.info("%s waits", name)
    while not (journal.folder() / gate).exists():
        time.sleep(0.01)
    logger.info("%s goes on", name)
    journal.write("end", name)


@task(backoff=AT_ONCE)
async def asay_and_wait(name, gate):
    journal.write("start", name)
    logger.info("%s waits", name)
    while not (journal.folder() / gate).exists():
        await asyncio.sleep(0.01)
    logger.info("%s goes on", name)


@task(max_crashes=0)
def die_when_told(name, gate):
    logger.warning("%s is about to die", name)
    journal.write("start", name)
    while not (journal.folder() / gate).exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


class _Odd:
    def __str__(self):
        raise ValueError("cannot be shown")


@task(backoff=AT_ONCE)
def log_oddly():
    """All of it is a line, or none: it never fails the job."""
    logger.info("%d", "no number")
    logger.info("%s", _Odd())
    logger.info(_Odd())
    logger.info("\ud800")
    logger.info("x" * 100_000)
    apart.warning("by a logger that does not propagate")
    logger.debug("not shown: its logger is at INFO")
    try:
        raise KeyError("inner")
    except KeyError:
        logger.exception("failed within")
    thread = threading.Thread(target=logger.warning, args=("by a thread without the context of the job",))
    thread.start()
    thread.join()
