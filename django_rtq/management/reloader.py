"""rtq_worker --reload: runs the worker as a subprocess, and starts it again when Python code of the project changes.

This process never imports changed code, so an error in it ends only the subprocess. The next change starts it again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from django_rtq.worker.supervisor.process_pool import kill_with_parent

CHECK_SECONDS = 0.5  # how often it looks whether the subprocess has ended, and without watchfiles for changes
SKIPPED = {"__pycache__", "node_modules", "site-packages"}

Changes = Iterator[set[str]]  # paths of changed files; an empty set from time to time


def run_with_reload(arguments: Sequence[str], say: Callable[[str], object]) -> int:
    """Run a command of manage.py until it ends without an error, or this process is told to stop. Returns its code."""
    roots, told = code_roots(), []

    def exit_now(signum: int, frame: object) -> NoReturn:
        told.append(signum)
        sys.exit(0)

    previous = signal.signal(signal.SIGTERM, exit_now)
    try:
        with _Subprocess(arguments) as process:
            for changed in watch(roots):
                if changed:
                    say(f"{_shown(changed)} changed: restarting")
                    process.restart()
                elif (code := process.ended()) == 0:
                    return 0
                elif code is not None:
                    say(f"the worker ended with exit code {code}: waiting for a change of code")
        return 0
    except KeyboardInterrupt:
        return 0 if told else 128 + signal.SIGINT  # watchfiles makes any signal a KeyboardInterrupt
    finally:
        signal.signal(signal.SIGTERM, previous)


def code_roots() -> list[Path]:
    """The folders of the import path with code of the project: all but those of Python and of installed packages."""
    installed = [Path(path).resolve() for path in {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix}]
    roots: set[Path] = set()
    for module in list(sys.modules.values()):
        if file := getattr(module, "__file__", None):
            path = Path(file).resolve()
            folder = path.parents[str(getattr(module, "__name__", "")).count(".") + (path.name == "__init__.py")]
            if not _is_installed(path, folder, installed):
                roots.add(folder)
    return sorted(root for root in roots if not any(other in root.parents for other in roots))


def _is_installed(file: Path, folder: Path, installed: Iterable[Path]) -> bool:
    if SKIPPED & set(file.parts):
        return True
    # A project may lie in the folder of its virtual environment, but hardly in that of Python.
    return any(folder == place or place in folder.parents for place in installed)


def watch(roots: Sequence[Path]) -> Changes:
    """Changes of Python files in these folders: by watchfiles if it is installed, or else by their times."""
    if find_spec("watchfiles") is None:
        return poll(roots)
    watchfiles = import_module("watchfiles")
    return (
        {path for _, path in found}
        for found in watchfiles.watch(
            *roots,
            watch_filter=watchfiles.PythonFilter(),
            rust_timeout=int(CHECK_SECONDS * 1000),
            yield_on_timeout=True,
            raise_interrupt=True,
        )
    )


def poll(roots: Sequence[Path], sleep: Callable[[float], object] = time.sleep) -> Changes:
    """Changes of Python files in these folders, by their times."""
    known = _times(roots)
    while True:
        sleep(CHECK_SECONDS)
        found = _times(roots)
        yield {path for path in known.keys() | found.keys() if known.get(path) != found.get(path)}
        known = found


def _times(roots: Iterable[Path]) -> dict[str, int]:
    times: dict[str, int] = {}
    for root in roots:
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED]
            if "pyvenv.cfg" in files:  # a virtual environment
                folders.clear()
                continue
            for name in files:
                if name.endswith(".py"):
                    path = Path(folder, name)
                    try:
                        times[str(path)] = path.stat().st_mtime_ns
                    except OSError:
                        continue  # deleted in this moment
    return times


class _Subprocess:
    """The worker. A context manager that stops it at the end."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = [sys.executable, *arguments]

    def __enter__(self) -> _Subprocess:
        self._start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop()

    def _start(self) -> None:
        # This process may be killed, and then it cannot stop the other one.
        stop_with_parent = partial(kill_with_parent, signal.SIGTERM)
        self._process = subprocess.Popen(self._arguments, preexec_fn=stop_with_parent)  # noqa: PLW1509
        self._is_reported = False

    def _stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def restart(self) -> None:
        """Stop it as a first signal does: it may finish its running jobs. Then start it again."""
        self._stop()
        self._start()

    def ended(self) -> int | None:
        """Its exit code, once; None while it runs, and afterwards."""
        code = self._process.poll()
        if code is None or self._is_reported:
            return None
        self._is_reported = True
        return code


def _shown(paths: set[str]) -> str:
    first, *others = sorted(paths)
    name = os.path.relpath(first)
    return f"{name} and {len(others)} more" if others else name
