"""Runs the admin as a server process, and fetches pages from it without a browser."""

import json
import os
import signal
import socket
import urllib.request

from testproject.redis_server import free_port
from tests.support.forked_commands import ROOT, ForkedPython
from tests.support.waiting import wait_until


class AdminServer:
    """An admin server: its process, database and URL. It keeps its port after a restart.

    A worker with `environment` has its settings and its database.
    """

    def __init__(self, folder, redis_url, **environment):
        self.database = folder / "admin_server.sqlite3"
        self.environment = {"RTQ_REDIS_URL": redis_url, "RTQ_DATABASE": str(self.database), **environment}
        self._process = None
        self._port = free_port()
        self._log = folder / f"admin_server_{self._port}.log"
        self.cookie = ""

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    @property
    def log(self):
        return self._log.read_text(errors="replace")

    def start(self):
        """Start it, unless it runs. Returns when it responds."""
        if self._process is not None:
            return self
        self._log.unlink(missing_ok=True)
        settings = {"DJANGO_SETTINGS_MODULE": "tests.console.browser.settings"}
        self._process = ForkedPython(
            ["-m", "tests.console.browser.serve", self._port],
            {**os.environ, **settings, **self.environment},
            self._log,
            ROOT,
        )
        wait_until(lambda: self._process.poll() is not None or answers(self._port), seconds=60)
        assert self._process.poll() is None, self.log
        self.cookie, *_ = self.log.splitlines()
        return self

    def stop(self):
        """Stop it. May be called twice."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)  # it has nothing to put in order
            self._process.wait()
            self._process = None

    def freeze(self):
        """Freeze the process: it stops responding and keeps its connections."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        """Continue the process. May be called twice."""
        self._process.send_signal(signal.SIGCONT)

    def get(self, path):
        """Fetch a page as the logged-in user: (status, HTML)."""
        request = urllib.request.Request(self.url + path, headers={"Cookie": f"sessionid={self.cookie}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()


def refresh_every(seconds, **options):
    """The environment of a server with this refresh interval, and these options in RTQ."""
    return {"RTQ_TEST_OPTIONS": json.dumps({"ADMIN_REFRESH_SECONDS": seconds, **options})}


def answers(port):
    """Whether a server is listening on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
