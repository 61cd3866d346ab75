"""Jobs that use signals and processes of their own."""

import multiprocessing
import os
import signal
import subprocess
import time

from django_rtq import constant, task

AT_ONCE = constant(0)
NAMES = ("SIGTERM", "SIGINT", "SIGUSR1", "SIGALRM")


def _sleep():
    time.sleep(60)


@task(backoff=AT_ONCE)
def terminate_processes(number):
    """The exit codes of processes that are terminated as soon as they are forked."""
    codes = []
    for _ in range(number):
        process = multiprocessing.get_context("fork").Process(target=_sleep)
        process.start()
        process.terminate()
        process.join()
        codes.append(process.exitcode)
    return codes


@task(backoff=AT_ONCE)
def interrupt_program():
    """The exit code of a program that gets a SIGINT."""
    with subprocess.Popen(["sleep", "60"]) as program:
        program.send_signal(signal.SIGINT)
        return program.wait()


@task(backoff=AT_ONCE, time_limit=30)
def handlers_of_fork(own=None):
    """How a process that a job forks deals with signals, and what is left of the timer and the signal mask."""
    if own:
        signal.signal(getattr(signal, own), _own_handler)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        found = [_name(signal.getsignal(getattr(signal, name))) for name in NAMES]
        rest = [signal.getitimer(signal.ITIMER_REAL)[0], len(signal.pthread_sigmask(signal.SIG_BLOCK, ()))]
        os.write(writer, repr([*found, *rest]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with os.fdopen(reader) as file:
        return [file.read(), len(signal.pthread_sigmask(signal.SIG_BLOCK, ()))]


def _own_handler(signum, frame):
    pass


def _name(handler):
    return handler.name if isinstance(handler, signal.Handlers) else handler.__name__


@task(backoff=AT_ONCE)
def take_signals():
    """Take signals and give them back as asyncio's remove_signal_handler() does: to the default."""
    for name in NAMES:
        signal.signal(getattr(signal, name), signal.SIG_DFL)


@task(backoff=AT_ONCE)
def handlers():
    return [_name(signal.getsignal(getattr(signal, name))) for name in NAMES]
