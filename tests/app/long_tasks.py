"""Jobs that take long: they are stopped, or tell how far they are."""

import asyncio
import ctypes
import fcntl
import time

from django_rtq import JobCancelled, constant, current_job, report_progress, task
from tests.app import journal

AT_ONCE = constant(0)


@task(backoff=AT_ONCE)
def deaf(name, gate=None):
    """Does not stop when it is asked to."""
    is_told, is_open = False, False
    while not is_open:
        try:
            if not is_told:
                journal.write("start", name)
                is_told = True
            time.sleep(0.01)
            is_open = bool(gate) and (journal.folder() / gate).exists()
        except BaseException:  # noqa: BLE001
            journal.write("ignored", name)
    return "done"


@task(backoff=AT_ONCE)
def give_in():
    raise JobCancelled("there is nothing left to do")


@task(backoff=AT_ONCE, takes_context=True)
def count_up(context, name, gate):
    """Says how far it is, by both ways, much more often than anybody wants to know."""
    journal.write("start", name)
    for done in range(2000):
        context.progress(done, 2000, name)
    report_progress(2000, 2000, f"{name} waits")
    while not (journal.folder() / gate).exists():
        time.sleep(0.01)
    return current_job().job_id


@task(backoff=AT_ONCE)
async def acount_up(name, gate):
    journal.write("start", name)
    for done in range(2000):
        current_job().progress(done, 2000, name)
    await asyncio.sleep(0)
    report_progress(2000, 2000, f"{name} waits")
    while not (journal.folder() / gate).exists():
        await asyncio.sleep(0.01)
    return current_job().job_id


class Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


@task(backoff=AT_ONCE)
def hog(name, seconds):
    """Hold the interpreter lock, in one call that no other thread gets a turn in, and that no signal interrupts."""
    library, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
    until = Timespec(*divmod(time.time_ns() + int(seconds * 1e9), 10**9))
    journal.write("start", name)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_timedlock(mutex, ctypes.byref(until))
    journal.write("end", name)


@task(backoff=AT_ONCE)
def hog_until_unlocked(name, file):
    """Hold the interpreter lock until a test unlocks a file."""
    journal.write("start", name)
    with (journal.folder() / file).open() as locked:
        ctypes.PyDLL(None).flock(locked.fileno(), fcntl.LOCK_EX)
    journal.write("end", name)
