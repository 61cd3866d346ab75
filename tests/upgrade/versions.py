"""Two versions of the package for one small project in project/.

The sources of the other version come from git: the newest tag before this commit, or BASE while there is none.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.markdown import ROOT
from tests.support.waiting import PATIENCE

#: What the first release is upgraded from: a commit of main with the stored format 2.
BASE = "aa55e0a24b90e4fb1fa0557fd72a1c16aa471bb8"
PROJECT = Path(__file__).resolve().parent / "project"


def git(*arguments):
    """What git prints; "" if it fails."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.strip()


def base():
    """The tag or commit that is upgraded from. Skips the test where the history does not have it."""
    tags = git("tag", "--list", "v[0-9]*", "--merged", "HEAD", "--no-contains", "HEAD", "--sort", "-version:refname")
    name = tags.partition("\n")[0] or BASE
    is_repository = (ROOT / ".git").exists()  # and not a source distribution
    if not is_repository or not git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
        pytest.skip(f"upgrades are NOT tested: {name} is not in the history here. Run: git fetch --unshallow --tags")
    return name


def unpack(folder, revision):
    """The sources as they were then. What they need is taken from the environment of the tests."""
    archive = folder / "package.tar"
    subprocess.run(["git", "-C", ROOT, "archive", "-o", archive, revision, "django_rtq"], check=True, timeout=60)
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True, timeout=60)
    return folder


class Version:
    """The project with one version of the package. Everything that it starts is ended by `close()`."""

    def __init__(self, name, path, folder, redis_url):
        self.name = name
        self._folder = folder
        self._workers = []
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO"))}
        self.environment = {
            **environment,
            "DJANGO_SETTINGS_MODULE": "project_settings",
            "PYTHONPATH": os.pathsep.join([str(PROJECT), str(path)]),
            "RTQ_REDIS_URL": redis_url,
            "RTQ_FOLDER": str(folder),
        }

    def manage(self, *commands):
        """What each of these commands prints, which are lines without quotes. One process runs all."""
        return self.run("commands.py", json.dumps([command.split() for command in commands]))

    def run(self, script, *arguments, **variables):
        """Run a script of the project. Returns its JSON."""
        done = subprocess.run(
            [sys.executable, PROJECT / script, *arguments],
            cwd=PROJECT,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{self.name}: {script} {arguments}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def start(self, *arguments):
        """Start a worker, in a process group of its own, or with a name that ends in .py a script."""
        is_script = arguments[0].endswith(".py")
        command = [PROJECT / arguments[0]] if is_script else ["-m", "django", "rtq_worker", arguments[0]]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *command, *map(str, arguments[1:])],
                cwd=PROJECT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._workers.append(process)
        return process

    @property
    def log(self):
        return self._folder / f"{self.name}.log"

    def close(self):
        for process in self._workers:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)
