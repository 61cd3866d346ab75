"""The tests of a small project, run by Django's test runner and by pytest with several processes."""

import re
from pathlib import Path

import pytest

from tests.support.projects import pytest_arguments, run_python

pytestmark = pytest.mark.long

PROJECT = Path(__file__).parent / "project"


def run(redis, *arguments, **variables):
    """Run Python in the folder of the project. Returns what it printed. The project's Redis stays empty."""
    code, output = run_python(
        PROJECT, *arguments, PROJECT_REDIS_URL=redis.proxy.url, PYTHONDONTWRITEBYTECODE="1", **variables
    )
    assert code == 0, output
    assert redis.keys() == []
    return output


def count_of_tests():
    text = (PROJECT / "shop/tests.py").read_text()
    return len(re.findall(r" def test_", text))


@pytest.mark.parametrize("options", [[], ["--parallel", "2"]], ids=" ".join)
def test_the_test_runner_of_django(redis, options):
    pytest.importorskip("lupa")
    output = run(redis, "manage.py", "test", *options)
    assert f"Ran {count_of_tests()} tests" in output


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=" ".join)
def test_pytest(redis, options):
    pytest.importorskip("lupa")
    if options:
        pytest.importorskip("xdist")
    output = run(redis, *pytest_arguments(), *options)
    assert int(re.search(r"(\d+) passed", output)[1]) > 25


def test_several_processes_share_a_server_for_tests(redis):
    pytest.importorskip("xdist")
    options = ["-n", "2", "-k", "Drained or drain"]
    output = run(redis, *pytest_arguments(), *options, PROJECT_TEST_REDIS_URL=redis.proxy.url)
    assert int(re.search(r"(\d+) passed", output)[1]) >= 10
