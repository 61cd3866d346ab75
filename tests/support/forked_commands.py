"""Python in processes of its own that start at once: they are forked from a server of this session, which has imported
Django, pytest and the package already. What is configured is read after the fork, as in any process."""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.support.preloaded"])
INHERITED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)  # if they are ignored


class ForkedPython:
    """`python ARGUMENTS` in this folder with this environment, in a session of its own; what it prints is appended to a
    file. Has the methods of subprocess.Popen that tests use."""

    def __init__(self, arguments, environment, log, folder):
        log.touch()
        ignored = [signum for signum in INHERITED if signal.getsignal(signum) is signal.SIG_IGN]
        given = (list(map(str, arguments)), environment, log, str(folder), ignored)
        self._process = SERVER.Process(target=_run, args=given)
        self._process.start()
        self.pid = self._process.pid
        wait_until(self._leads_a_session)  # as its caller may signal the group at once

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("python", timeout)
        return self.poll()

    def send_signal(self, signum):
        if self.poll() is None:
            os.kill(self.pid, signum)

    def _leads_a_session(self):
        try:
            return os.getsid(self.pid) == self.pid
        except ProcessLookupError:  # it is over
            return True


class ForkedCommand(ForkedPython):
    """`python testproject/manage.py ARGUMENTS`."""

    def __init__(self, arguments, environment, log):
        super().__init__(["testproject/manage.py", *arguments], environment, log, ROOT)


def _run(arguments, environment, log, folder, ignored):
    """The forked process: become what `python ARGUMENTS` is in this folder with this environment."""
    os.setsid()
    with log.open("ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    for signum in INHERITED:
        default = signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL
        signal.signal(signum, signal.SIG_IGN if signum in ignored else default)
    multiprocessing.set_start_method(None, force=True)  # the usual one
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in environment
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = arguments[arguments[0] == "-m" :]
    if arguments[:2] != ["-m", "pytest"]:
        del sys.modules["_pytest"]  # by which the package knows that a process runs tests
    if arguments[0] == "-m":
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(arguments[0], run_name="__main__")
