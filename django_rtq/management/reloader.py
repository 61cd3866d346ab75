"""rtq_worker --reload: runs the worker as a subprocess, and starts it again when Python code of the project changes.

This process never imports changed code, so an error in it ends only the subprocess. The next change starts it again.
`watchfiles.run_process` is not used: it kills a process 5 seconds after Ctrl-C, and does not end when the process
does (D134).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from django.core.management.base import CommandError

from django_rtq.worker.supervisor.process_pool import kill_with_parent

CHECK_MS = 500  # how often it looks whether the subprocess has ended
SKIPPED = {"__pycache__", "node_modules", "site-packages"}


def run_with_reload(arguments: Sequence[str], say: Callable[[str], object]) -> int:
    """Run a command of manage.py until it ends without an error, or this process is told to stop. Returns its code."""
    try:
        from watchfiles import PythonFilter, watch
    except ImportError:
        raise CommandError("--reload needs watchfiles, which finds changes of code: pip install watchfiles") from None
    told: list[int] = []

    def exit_now(signum: int, frame: object) -> NoReturn:
        told.append(signum)
        sys.exit(0)

    previous = signal.signal(signal.SIGTERM, exit_now)
    process, is_reported = _start(arguments), False
    try:
        for changes in watch(*watched(), watch_filter=PythonFilter(), rust_timeout=CHECK_MS, yield_on_timeout=True):
            if changes:
                say(f"{_shown({path for _, path in changes})} changed: restarting")
                _stop(process)
                process, is_reported = _start(arguments), False
            elif (code := process.poll()) == 0:
                return 0
            elif code is not None and not is_reported:
                say(f"the worker ended with exit code {code}: waiting for a change of code")
                is_reported = True
        return 0
    except KeyboardInterrupt:
        return 0 if told else 128 + signal.SIGINT  # watchfiles makes any signal a KeyboardInterrupt
    finally:
        _stop(process)
        signal.signal(signal.SIGTERM, previous)


def _start(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    # This process may be killed, and then it cannot stop the other one.
    stop_with_parent = partial(kill_with_parent, signal.SIGTERM)
    return subprocess.Popen([sys.executable, *arguments], preexec_fn=stop_with_parent)  # noqa: PLW1509


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop it as a first signal does: it may finish its running jobs."""
    if process.poll() is None:
        process.terminate()
        process.wait()


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


def watched() -> list[Path]:
    """What is in these folders, but for virtual environments and hidden folders, which have too many files."""
    return [path for root in code_roots() for path in sorted(root.iterdir()) if _is_code(path)]


def _is_code(path: Path) -> bool:
    if path.is_dir():
        return not (path.name.startswith(".") or path.name in SKIPPED or (path / "pyvenv.cfg").exists())
    return path.suffix == ".py"


def _is_installed(file: Path, folder: Path, installed: Iterable[Path]) -> bool:
    if SKIPPED & set(file.parts):
        return True
    # A project may lie in the folder of its virtual environment, but hardly in that of Python.
    return any(folder == place or place in folder.parents for place in installed)


def _shown(paths: set[str]) -> str:
    first, *others = sorted(paths)
    name = os.path.relpath(first)
    return f"{name} and {len(others)} more" if others else name
