"""A private PostgreSQL server in a temporary folder, from the programs that are installed, such as Debian's package."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testproject.redis_server import free_port
from testproject.server_process import end_with_parent, server_user

START_SECONDS = 30.0
DEFAULT_PORT = 5432  # part of the name of a Unix socket
USER = "rtq"


class PostgresUnavailable(RuntimeError):
    """It cannot be used here. The message says what to install."""


class PrivatePostgres:
    """One server, on 127.0.0.1 or a Unix socket. A context manager. Raises PostgresUnavailable.

    ``arguments`` are passed to the server; without them it has default settings.
    """

    def __init__(self, *, unix_socket: bool = False, arguments: Sequence[str] = ()) -> None:
        self._unix_socket = unix_socket
        self._arguments = tuple(arguments)

    def __enter__(self) -> PrivatePostgres:
        if importlib.util.find_spec("psycopg") is None:
            raise PostgresUnavailable("psycopg is not installed: pip install 'psycopg[binary,pool]'")
        programs = _programs()
        self._user = server_user("postgres")  # it refuses to run as root
        self._directory = Path(tempfile.mkdtemp(prefix="rtq-postgres-"))
        if self._user:
            shutil.chown(self._directory, self._user)
        self.host = str(self._directory) if self._unix_socket else "127.0.0.1"
        self.port = DEFAULT_PORT if self._unix_socket else free_port()
        data = self._directory / "data"
        initdb: list[str | Path] = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            USER,
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
        ]
        try:
            subprocess.run(initdb, check=True, user=self._user, cwd=self._directory, capture_output=True)
            self._process = self._start(programs, data)
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(self._directory)
            raise PostgresUnavailable(f"it does not start: {getattr(error, 'stderr', b'')!r} {error}") from error
        return self

    def __exit__(self, *error: object) -> None:
        self._process.send_signal(signal.SIGINT)  # ends sessions, too
        self._process.wait(START_SECONDS)
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def settings(self) -> dict[str, Any]:
        """For DATABASES."""
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": USER,
            "HOST": self.host,
            "PORT": self.port,
        }

    def create_database(self, name: str) -> dict[str, Any]:
        """Create an empty database. Returns its entry for DATABASES."""
        with self._connect() as connection:
            connection.autocommit = True
            connection.execute(f'CREATE DATABASE "{name}"')
        return {**self.settings, "NAME": name}

    def _start(self, programs: Path, data: Path) -> subprocess.Popen[bytes]:
        from psycopg import OperationalError

        command: list[str | Path] = [programs / "postgres", "-D", data, "-p", str(self.port), *self._arguments]
        tcp, folder = ("", self.host) if self._unix_socket else (self.host, "")
        command += ["-c", f"listen_addresses={tcp}", "-c", f"unix_socket_directories={folder}"]
        with (self._directory / "log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self._directory,
                user=self._user,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent(signal.SIGQUIT),  # noqa: PLW1509 - takes no locks
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._connect().close()
            except OperationalError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    raise OSError(str(error)) from error
                time.sleep(0.05)
            else:
                return process

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(host=self.host, port=self.port, user=USER, dbname="postgres")


def _programs() -> Path:
    """The folder with initdb and postgres: of the newest version that Debian has installed, or on PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    if found := shutil.which("initdb"):
        folders.insert(0, Path(found).resolve().parent)
    for folder in reversed(folders):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise PostgresUnavailable("neither initdb nor postgres was found: apt-get install postgresql")
