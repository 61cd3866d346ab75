"""manage.py rtq_worker: run jobs.

What runs them is imported in handle(). There are no garbage collections meanwhile: these took a sixth of the start.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import socket
import subprocess
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_rtq.core.commands.command import QUEUES, Options, RTQCommand, seconds_from, whole_number
from django_rtq.core.extension import required

MOST_SLOTS = 10_000
_count = whole_number(1, 100_000)
RELOAD = "--reload"


class Command(RTQCommand):
    """Parses the options and runs the Supervisor."""

    help = (
        "Run the jobs of one or more queues. The first Ctrl-C or SIGTERM lets running jobs finish, a second one "
        "returns them to their queues at once. Exit codes: 0 stopped, or burst finished; 1 cannot start; 64 wrong "
        "usage; 130, 143 or 129 stopped by a second signal."
    )
    requires_system_checks = ["rtq"]
    backend_help = "serve the Redis of this backend in TASKS, by default all its declared queues"
    takes_shard = False  # it takes --shards

    def add_arguments(self, parser: CommandParser) -> None:
        """The options, the most used first."""
        add = parser.add_argument
        QUEUES.but(
            help="queues by priority: B is served only while A is empty (default: the default queue); 'mail-*' stands "
            "for the declared queues that match, and '*' for all of them"
        ).add_to(parser)
        add("--shuffle", action="store_true", help="serve the queues in random order, so that no queue starves")
        add("--processes", type=_processes, default=1, metavar="N", help="worker processes (default 1)")
        add("--concurrency", type=_slots, default=1, metavar="M", help="concurrent jobs in each process (default 1)")
        add("--burst", action="store_true", help="exit when the queues are empty; does not wait for scheduled jobs")
        add("--max-jobs", type=_count, metavar="N", help="restart a process after N jobs (default: never)")
        add(
            "--drain-seconds",
            type=seconds_from(0),
            default=25.0,
            metavar="S",
            help="how long to wait for running jobs on shutdown (25)",
        )
        add("--name", default=socket.gethostname(), help="prefix for worker names (default: the host name)")
        add(
            "--no-scheduler",
            action="store_true",
            help="leave enqueueing delayed jobs and retries to others",
        )
        add(
            "--health-file",
            default="",
            metavar="PATH",
            help="touch this file every two seconds while all processes are alive",
        )
        add(RELOAD, action="store_true", help="restart when code changes; for development")
        add("--shards", type=_shards, metavar="A-B", help='serve only these of RTQ["SHARDS"], like 0-3 or 0,5')

    def execute(self, *args: Any, **options: Any) -> str | None:
        gc.disable()  # until ProcessPool.prepare(): what is imported and made meanwhile is kept
        try:
            return super().execute(*args, **options)
        finally:
            gc.enable()

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped."""
        if options["reload"]:
            gc.enable()
            _run_with_reload([argument for argument in sys.argv if argument != RELOAD], self.stderr.write)
            return
        if code := self._run_all(options):
            sys.exit(code)

    def places(self, options: Options) -> list[str]:
        """The Redis of a backend, the shards that are named, or all shards."""
        shards = options["shards"] or [None]
        return [place for number in shards for place in super(Command, self).places({**options, "shard": number})]

    def _run_all(self, options: Options) -> int:
        """Run a supervisor: of one Redis, or one for each shard."""
        from django_rtq.core.commands.worker_setup import queue_names, run_supervisor

        if len(places := self.places(options)) == 1:
            return run_supervisor({**options, "backend": places[0]})
        queue_names(options["queues"], places[0])  # wrong ones are told once, and not by each process
        code: int = required("supervisors")(
            places,
            lambda place, health_file: run_supervisor({**options, "backend": place, "health_file": health_file}),
            health_file=options["health_file"],
        )
        return code


def _run_with_reload(arguments: Sequence[str], say: Callable[[str], object]) -> None:
    """Run a command of manage.py as a subprocess, and restart it when Python code below this folder changes, until it
    ends without an error, or this process is told to stop."""
    try:
        from watchfiles import PythonFilter, watch
    except ImportError:
        raise CommandError("--reload needs watchfiles, which finds changes of code: pip install watchfiles") from None
    from django_rtq.core.worker.supervisor.process_pool import kill_with_parent

    def stop(signum: int, frame: object) -> None:  # Ctrl-C reaches the subprocess by itself
        process.terminate()
        raise KeyboardInterrupt

    command, die_with_parent = [sys.executable, *arguments], partial(kill_with_parent, signal.SIGTERM)
    process = subprocess.Popen(command, preexec_fn=die_with_parent)  # noqa: PLW1509
    signal.signal(signal.SIGTERM, stop)
    with suppress(KeyboardInterrupt):
        for changes in watch(".", watch_filter=PythonFilter(), yield_on_timeout=True, rust_timeout=500):
            if changes:
                say(f"{os.path.relpath(min(path for _, path in changes))} changed: restarting")
                process.terminate()
                process.wait()  # running jobs finish
                process = subprocess.Popen(command, preexec_fn=die_with_parent)  # noqa: PLW1509
            elif process.poll() == 0:
                break
    process.wait()


def _shards(text: str) -> list[int]:
    numbers = set[int]()
    for part in text.split(","):
        if not (found := re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part)):
            raise ArgumentTypeError(f"{text!r} are no numbers of shards, such as 0-3 or 0,5.")
        numbers.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    if not numbers:
        raise ArgumentTypeError(f"{text!r} names no shard: the lower number comes first.")
    return sorted(numbers)


def _processes(text: str) -> int:
    count, most = _count(text), max(64, 8 * (os.cpu_count() or 1))
    if count > most:
        raise ArgumentTypeError(
            f"{count} processes are more than the limit of {most} on this machine (8 for each CPU, but at least 64). "
            "For jobs that mostly wait, raise --concurrency; for more CPU, start workers on more machines."
        )
    return count


def _slots(text: str) -> int:
    count = _count(text)
    if count > MOST_SLOTS:
        raise ArgumentTypeError(
            f"{count} concurrent jobs are more than the limit of {MOST_SLOTS} for one process. Raise --processes."
        )
    return count
