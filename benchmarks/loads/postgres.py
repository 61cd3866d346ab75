"""A temporary PostgreSQL server on 127.0.0.1, from the programs that are installed, such as Debian's package."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from testproject.redis_server import free_port

START_SECONDS = 30.0


class PostgresUnavailable(RuntimeError):
    """It cannot be used here. The message says what to install."""


class PrivatePostgres:
    """One server with default settings. A context manager. Raises PostgresUnavailable."""

    def __enter__(self) -> PrivatePostgres:
        if importlib.util.find_spec("psycopg") is None:
            raise PostgresUnavailable("psycopg is not installed: pip install 'psycopg[binary,pool]'")
        programs = _programs()
        self._user = _user()
        self._directory = Path(tempfile.mkdtemp(prefix="rtq-postgres-"))
        if self._user:
            shutil.chown(self._directory, self._user)
        self.port = free_port()
        data = self._directory / "data"
        initdb = [programs / "initdb", "-D", data, "-U", "bench", "--auth=trust", "--no-sync", "-E", "UTF8"]
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
            "USER": "bench",
            "HOST": "127.0.0.1",
            "PORT": self.port,
        }

    def _start(self, programs: Path, data: Path) -> subprocess.Popen[bytes]:
        import psycopg

        command = [programs / "postgres", "-D", data, "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        with (self._directory / "log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self._directory, user=self._user, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(host="127.0.0.1", port=self.port, user="bench", dbname="postgres").close()
            except psycopg.OperationalError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    raise OSError(str(error)) from error
                time.sleep(0.05)
            else:
                return process


def _programs() -> Path:
    """The folder with initdb and postgres: of the newest version that Debian has installed, or on PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    if found := shutil.which("initdb"):
        folders.insert(0, Path(found).resolve().parent)
    for folder in reversed(folders):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise PostgresUnavailable("neither initdb nor postgres was found: apt-get install postgresql")


def _user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.getuid():
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"
