"""Worker processes that tests start, watch and end by their ids."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.support.forked_commands import ForkedCommand
from tests.support.waiting import PATIENCE


class WorkerProcess:
    """One `manage.py rtq_worker`: a supervisor, in a process group of its own, and its children. Or another command."""

    def __init__(self, arguments, environment, log, command="rtq_worker"):
        self._log = log
        self._process = ForkedCommand([command, *arguments], {**os.environ, **environment}, log)
        self.pid = self._process.pid
        self.processes = int(arguments[arguments.index("--processes") + 1]) if "--processes" in arguments else 1

    @property
    def is_running(self):
        return self._process.poll() is None

    @property
    def log(self):
        return self._log.read_text(errors="replace")

    @property
    def children(self):
        """Process ids of the children that live."""
        try:
            found = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            return []
        return [int(pid) for pid in found if is_alive(int(pid))]

    @property
    def child(self):
        (child,) = self.children
        return child

    def kill(self, signum=signal.SIGKILL):
        """Send a signal to the supervisor."""
        self._process.send_signal(signum)

    def kill_group(self, signum):
        """Send a signal to all, as a terminal does."""
        os.killpg(self.pid, signum)

    def stop(self, signum=signal.SIGTERM):
        """Tell it to stop; returns its exit code."""
        self.kill(signum)
        return self.wait()

    def wait(self, seconds=PATIENCE):
        """Its exit code. The default is less than the time that running jobs have when a worker stops."""
        return self._process.wait(seconds)

    def end(self):
        """Whatever became of it: nothing is left when this returns. May be called twice."""
        if self.is_running:
            with suppress(ProcessLookupError):
                self.kill_group(signal.SIGCONT)
            self.kill(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.wait(20.0)
        with suppress(ProcessLookupError):
            self.kill_group(signal.SIGKILL)
        self.wait()


def is_alive(pid):
    """Whether it runs; one that nobody has asked for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return False
    return state not in "ZX"


def is_idle(pid):
    """Whether all its threads sleep, so that it has nothing left to do for what has happened."""
    try:
        stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return False
    return all(stat.rpartition(") ")[2][0] == "S" for stat in stats)
