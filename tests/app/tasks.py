"""Jobs that behave, and jobs that do not."""

import asyncio
import ctypes
import os
import resource
import signal
import sys
import threading
import time
from contextlib import contextmanager

from django.db import connection
from django.utils import timezone, translation

from django_rtq import Bury, Retry, constant, task
from tests.app import context_tasks, journal, long_tasks, signal_tasks  # noqa: F401 - so that they are registered

AT_ONCE = constant(0)


@contextmanager
def told(name):
    """Tell the journal of a start, and of an end if there is one."""
    journal.write("start", name)
    yield
    journal.write("end", name)


def wait_for(gate, *, step=0.005):
    """Until a test opens the gate."""
    while not (journal.folder() / gate).exists():
        time.sleep(step)


@task(backoff=AT_ONCE)
def note(name):
    with told(name):
        return name


@task(backoff=AT_ONCE)
def sleep(name, seconds):
    with told(name):
        time.sleep(seconds)


@task(backoff=AT_ONCE)
def gate(name, gate):
    with told(name):
        wait_for(gate)


@task(backoff=AT_ONCE)
async def agate(name, gate):
    with told(name):
        while not (journal.folder() / gate).exists():
            await asyncio.sleep(0.005)


@task(backoff=AT_ONCE)
async def asleep(name, seconds):
    with told(name):
        await asyncio.sleep(seconds)
        return name


@task(backoff=AT_ONCE, takes_context=True)
def attempts(context, name, fail_until):
    journal.write("start", name)
    if context.attempt < fail_until:
        raise ValueError(f"attempt {context.attempt} of {name}")
    return context.attempt


@task(backoff=AT_ONCE)
def die(name, how, gate=None):
    """Take the process down."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    journal.write("start", name)
    if gate:
        wait_for(gate)
    if how == "exit":
        os._exit(0)
    elif how == "abort":
        os.abort()
    elif how == "segfault":
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
        ctypes.string_at(0)
    elif how == "memory":
        raise MemoryError
    elif how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


@task(backoff=AT_ONCE)
def die_once(name, how):
    """Take the process down the first time, and work the second."""
    if (journal.folder() / f"died-{name}").exists():
        note.func(name)
    else:
        (journal.folder() / f"died-{name}").touch()
        die.func(name, how)


@task(backoff=AT_ONCE)
async def adie(name, how):
    die.func(name, how)


@task(backoff=AT_ONCE)
def leave(name):
    journal.write("start", name)
    sys.exit(f"{name} wants to leave")


@task(backoff=AT_ONCE)
async def aleave(name, kind="SystemExit"):
    journal.write("start", name)
    await asyncio.sleep(0)
    raise {"SystemExit": SystemExit, "Cancelled": asyncio.CancelledError, "Interrupt": KeyboardInterrupt}[kind]


@task(backoff=AT_ONCE)
def stubborn(name):
    """Does not heed its time limit."""
    journal.write("start", name)
    while True:
        try:
            time.sleep(0.01)
        except Exception:  # noqa: BLE001
            journal.write("ignored", name)


@task(backoff=AT_ONCE)
def loop(name):
    """Runs until somebody ends it, in short steps."""
    journal.write("start", name)
    while True:
        time.sleep(0.005)


@task(backoff=AT_ONCE)
async def aloop(name):
    journal.write("start", name)
    await asyncio.sleep(3600)


@task(backoff=AT_ONCE)
def bury(name):
    journal.write("start", name)
    raise Bury(f"{name} is hopeless")


@task(backoff=AT_ONCE)
def retry(name, after):
    journal.write("start", name)
    raise Retry(f"{name} again", after=float(after))


class BrokenText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class EndlessText(Exception):
    def __str__(self):
        return str(self)


class RudeText(Exception):
    def __str__(self):
        return sys.exit("rude")


def chain_of_errors():
    """An exception that is its own cause, by way of another."""
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    return one


ERRORS = {
    "broken": BrokenText,
    "endless": EndlessText,
    "rude": RudeText,
    "circular": chain_of_errors,
    "huge": lambda: ValueError("x" * 100_000_000),
    "surrogates": lambda: ValueError("lone \ud800 surrogate"),
    "control": lambda: ValueError("\x00\r\n\x1b[31m"),
    "interrupt": KeyboardInterrupt,
    "generator": GeneratorExit,
    "stop": StopIteration,
    "exit": lambda: SystemExit(3),
    "base": lambda: BaseException("base"),
    "recursion": lambda: RecursionError("deep"),
    "nan": lambda: Retry("odd", after=float("nan")),
    "infinite": lambda: Retry("odd", after=float("inf")),
    "words": lambda: Retry("odd", after="tomorrow"),
}


@task(backoff=AT_ONCE)
def raises(kind):
    raise ERRORS[kind]()


@task(backoff=AT_ONCE)
def deep():
    return deep.func() + 1


class LazyTrouble:
    def __str__(self):
        raise RuntimeError("no text")


def circle():
    """A list that holds itself."""
    items = []
    items.append(items)
    return items


RESULTS = {
    "lambda": lambda: circle,
    "nan": lambda: float("nan"),
    "surrogates": lambda: "\ud800",
    "circular": circle,
    "huge": lambda: "x" * 2_000_000,
    "set": lambda: {1, 2},
    "keys": lambda: {1: 2},
    "lazy": lambda: translation.gettext_lazy(LazyTrouble()),
    "generator": lambda: (i for i in range(3)),
}


@task(backoff=AT_ONCE)
def returns(kind):
    journal.write("start", f"returns-{kind}")
    return RESULTS[kind]()


@task(backoff=AT_ONCE)
def settings_of_thread():
    """What a job sees of what others may have left."""
    return [translation.get_language(), timezone.get_current_timezone_name(), connection.in_atomic_block]


@task(backoff=AT_ONCE)
def leave_traces():
    translation.activate("de")
    timezone.activate("Asia/Tokyo")


@task(backoff=AT_ONCE)
async def aleave_traces():
    leave_traces.func()


@task(backoff=AT_ONCE)
def leave_transaction_open():
    from django.db import transaction

    transaction.atomic().__enter__()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@task(backoff=AT_ONCE)
async def aleave_transaction_open():
    from asgiref.sync import sync_to_async

    await sync_to_async(leave_transaction_open.func)()


@task(backoff=AT_ONCE)
def query(breaks=False):
    """Ask the database; then, perhaps, break the connection behind Django's back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 42")
        (answer,) = cursor.fetchone()
    seen = [answer, len(connection.queries), id(connection.connection)]
    if breaks:
        connection.connection.close()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    return seen


@task(backoff=AT_ONCE)
async def aquery():
    from asgiref.sync import sync_to_async

    return await sync_to_async(query.func)()


@task(backoff=AT_ONCE)
def where():
    return [os.getpid(), threading.current_thread().name]


@task(backoff=AT_ONCE)
def fork(name):
    """A copy of the process that goes on as if it were the worker."""
    journal.write("start", name)
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    return os.waitpid(pid, 0)[1]


@task(backoff=AT_ONCE, takes_context=True, max_crashes=1000)
def work(context, name, seconds=0.0):
    """For the torture: a line at the start, a line at the end, and whose child this is."""
    with told(f"{name} {os.getppid()} {context.attempt}"):
        if seconds:
            time.sleep(seconds)


@task(backoff=AT_ONCE, takes_context=True, max_crashes=1000)
async def awork(context, name, seconds=0.0):
    with told(f"{name} {os.getppid()} {context.attempt}"):
        await asyncio.sleep(seconds)


@task(backoff=AT_ONCE, takes_context=True, max_crashes=1000, max_attempts=1000)
def fail_twice(context, name):
    """Fails until its failures, and not its crashes, are two."""
    with told(f"{name} {os.getppid()} {context.attempt}"):
        marks = journal.folder() / f"failed-{name}"
        failed = len(marks.read_text()) if marks.exists() else 0
        if failed < 2:
            marks.write_text("x" * (failed + 1))
            raise ValueError(name)


@task(max_attempts=1)
def sign_in(user, password):
    """Fails with a message that tells its arguments."""
    raise ValueError(f"{user} may not sign in with {password}")
