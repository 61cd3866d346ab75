"""Django's own tests of django.tasks hold for our backend, with a real Redis.

They are in Django's source distribution, which is downloaded from the package index. Without network the test is
skipped, unless RTQ_CONFORMANCE is "required".
"""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import django
import pytest

from testproject.redis_server import PrivateRedis
from tests.backend.conformance.run import SKIPPED

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def source(pytestconfig):
    """The folder `tests/tasks` of the version of Django that is installed."""
    name = f"django-{django.get_version()}"
    folder = Path(pytestconfig.cache.mkdir("django"))
    if not (folder / name).exists():
        download = ["pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", name.replace("-", "==")]
        done = subprocess.run(
            [sys.executable, "-m", *download, "--dest", str(folder)], capture_output=True, text=True, check=False
        )
        if done.returncode and os.environ.get("RTQ_CONFORMANCE") != "required":
            pytest.skip("the source distribution of Django cannot be downloaded")
        assert not done.returncode, done.stderr
        with tarfile.open(folder / f"{name}.tar.gz") as archive:
            tests = [member for member in archive.getmembers() if member.name.startswith(f"{name}/tests/tasks/")]
            archive.extractall(folder, members=tests, filter="data")
    return folder / name / "tests" / "tasks"


@pytest.mark.skipif(django.VERSION < (6, 0), reason="Django 5.2 has no django.tasks")
def test_the_tests_of_django_hold(source):
    with PrivateRedis() as server:
        done = subprocess.run(
            [sys.executable, "-m", "tests.backend.conformance.run", str(source)],
            cwd=ROOT,
            env={**os.environ, "RTQ_REDIS_URL": server.url, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["run"] >= 70
    assert counts == {"run": counts["run"], "failed": 0, "skipped": len(SKIPPED)}
