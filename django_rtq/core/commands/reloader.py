"""rtq_worker --reload: runs the worker as a subprocess, and restarts it when Python code below this folder changes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from django.core.management.base import CommandError

from django_rtq.core.worker.supervisor.process_pool import kill_with_parent


def run_with_reload(arguments: Sequence[str], say: Callable[[str], object]) -> None:
    """Run a command of manage.py until it ends without an error, or this process is told to stop."""
    try:
        from watchfiles import PythonFilter, watch
    except ImportError:
        raise CommandError("--reload needs watchfiles, which finds changes of code: pip install watchfiles") from None

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
