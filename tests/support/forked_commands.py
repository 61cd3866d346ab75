"""Commands of manage.py in processes of their own that start at once: they are forked from a server of this session,
which has imported Django and the package already. What is configured is read after the fork, as in any process."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.support.preloaded"])
INHERITED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)  # if they are ignored


class ForkedCommand:
    """`manage.py ARGUMENTS` with this environment in a session of its own; what it prints is appended to a file. Has
    the methods of subprocess.Popen that tests use."""

    def __init__(self, arguments, environment, log):
        log.touch()
        ignored = [signum for signum in INHERITED if signal.getsignal(signum) is signal.SIG_IGN]
        self._process = SERVER.Process(target=_run, args=(list(map(str, arguments)), environment, log, ignored))
        self._process.start()
        self.pid = self._process.pid
        wait_until(self._leads_a_session)  # as its caller may signal the group at once

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("manage.py", timeout)
        return self.poll()

    def send_signal(self, signum):
        if self.poll() is None:
            os.kill(self.pid, signum)

    def _leads_a_session(self):
        try:
            return os.getsid(self.pid) == self.pid
        except ProcessLookupError:  # it is over
            return True


def _run(arguments, environment, log, ignored):
    """The forked process: become what `python testproject/manage.py` is with this environment."""
    os.setsid()
    with log.open("ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    for signum in INHERITED:
        default = signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL
        signal.signal(signum, signal.SIG_IGN if signum in ignored else default)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    sys.argv = ["manage.py", *arguments]
    from testproject.manage import main

    main()
