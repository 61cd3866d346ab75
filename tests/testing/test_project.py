"""The tests of a small project, run by Django's test runner and by pytest with several processes."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.markdown import ROOT

PROJECT = Path(__file__).parent / "project"
PLUGIN = "django_rtq.pytest_plugin"


def run(redis, *arguments, **variables):
    """Run Python in the folder of the project. Returns what it printed. The project's Redis stays empty."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO"))}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(PROJECT)]),
        "PROJECT_REDIS_URL": redis.proxy.url,
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert redis.keys() == []
    return done.stdout


def count_of_tests():
    text = (PROJECT / "shop/tests.py").read_text()
    return len(re.findall(r" def test_", text))


@pytest.mark.parametrize("options", [[], ["--parallel", "2"]], ids=" ".join)
def test_the_test_runner_of_django(redis, options):
    pytest.importorskip("lupa")
    output = run(redis, "manage.py", "test", *options)
    assert f"Ran {count_of_tests()} tests" in output


def plugin_options():
    """As in a project where the package is installed, also if this checkout is not."""
    installed = [entry.value for entry in entry_points(group="pytest11")]
    return [] if PLUGIN in installed else ["-p", PLUGIN]


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=" ".join)
def test_pytest(redis, options):
    pytest.importorskip("lupa")
    if options:
        pytest.importorskip("xdist")
    output = run(redis, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin_options(), *options)
    assert int(re.search(r"(\d+) passed", output)[1]) > 25


def test_several_processes_share_a_server_for_tests(redis):
    pytest.importorskip("xdist")
    options = ["-q", "-p", "no:cacheprovider", *plugin_options(), "-n", "2", "-k", "Drained or drain"]
    output = run(redis, "-m", "pytest", *options, PROJECT_TEST_REDIS_URL=redis.proxy.url)
    assert int(re.search(r"(\d+) passed", output)[1]) >= 10
