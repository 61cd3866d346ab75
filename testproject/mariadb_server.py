"""A private MariaDB server in a temporary folder, from the programs that are installed, such as Debian's package."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from testproject.server_process import end_with_parent, server_user

START_SECONDS = 60.0
USER = "root"  # of the database; without a password
FAST_OPTIONS = [
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--innodb-log-file-size=4M",
    "--skip-innodb-doublewrite",
]


class MariaDBUnavailable(RuntimeError):
    """It cannot be used here. The message says what to install."""


class PrivateMariaDB:
    """One server on a Unix socket, which writes nothing durably. A context manager. Raises MariaDBUnavailable."""

    def __enter__(self) -> PrivateMariaDB:
        if not install_driver():
            raise MariaDBUnavailable("neither mysqlclient nor PyMySQL is installed: pip install PyMySQL")
        install, server = _program("mariadb-install-db"), _program("mariadbd")
        self._directory = Path(tempfile.mkdtemp(prefix="rtq-mariadb-"))
        self._socket = self._directory / "socket"
        if user := server_user("mysql"):
            shutil.chown(self._directory, user)
        options = ["--no-defaults", f"--datadir={self._directory / 'data'}", *FAST_OPTIONS]
        options += [f"--tmpdir={self._directory}"]  # two servers with the same one delete each other's files
        try:
            subprocess.run(
                [install, *options, "--auth-root-authentication-method=normal", "--skip-test-db"],
                check=True,
                user=user,
                cwd=self._directory,
                capture_output=True,
            )
            self._process = self._start([server, *options], user)
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(self._directory)
            problem = getattr(error, "stderr", None) or error
            raise MariaDBUnavailable(f"it does not start: {str(problem)[-500:]}") from error
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()  # its data goes with it
        self._process.wait(START_SECONDS)
        shutil.rmtree(self._directory, ignore_errors=True)

    def create_database(self, name: str) -> dict[str, Any]:
        """Create an empty database. Returns its entry for DATABASES."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        return {"ENGINE": "django.db.backends.mysql", "NAME": name, "USER": USER, "HOST": str(self._socket)}

    def _start(self, command: list[str], user: str | None) -> subprocess.Popen[bytes]:
        with (self._directory / "log").open("ab") as log:
            process = subprocess.Popen(
                [*command, f"--socket={self._socket}", "--skip-networking"],
                cwd=self._directory,
                user=user,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent(signal.SIGKILL),  # noqa: PLW1509 - takes no locks
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise OSError((self._directory / "log").read_text()[-2000:])
            time.sleep(0.05)
        return process

    def _is_ready(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(self._socket)) == 0

    def _connect(self) -> Any:
        import MySQLdb

        return MySQLdb.connect(unix_socket=str(self._socket), user=USER)


def install_driver() -> bool:
    """Let PyMySQL take the place of mysqlclient, which Django expects, where only that is installed."""
    if importlib.util.find_spec("MySQLdb"):
        return True
    if not importlib.util.find_spec("pymysql"):
        return False
    import pymysql

    pymysql.install_as_MySQLdb()
    return True


def _program(name: str) -> str:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])  # users have no sbin in their PATH
    if found := shutil.which(name, path=path):
        return found
    raise MariaDBUnavailable(f"{name} was not found: apt-get install mariadb-server")
