"""The tests of a small project, run by Django's test runner and by pytest with several processes."""

import os
import re
from pathlib import Path

import pytest

from tests.markdown import ROOT
from tests.support.projects import PLUGIN, pytest_arguments, run_python
from tests.support.redis_server import UNREACHABLE

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


def test_the_test_runner_of_django(redis):
    pytest.importorskip("lupa")
    output = run(redis, "manage.py", "test", "--parallel", "2")
    tests = re.findall(r" def test_", (PROJECT / "shop/tests.py").read_text())
    assert f"Ran {len(tests)} tests" in output


def test_pytest(redis):
    pytest.importorskip("lupa")
    output = run(redis, *pytest_arguments())
    assert int(re.search(r"(\d+) passed", output)[1]) > 15


def test_several_processes_share_a_server_for_tests(redis):
    pytest.importorskip("xdist")
    options = ["-n", "2", "-k", "Drained or drain"]
    output = run(redis, *pytest_arguments("xdist"), *options, PROJECT_TEST_REDIS_URL=redis.proxy.url)
    assert int(re.search(r"(\d+) passed", output)[1]) >= 9


# -- RTQ["TEST"]


def count_of_passed(output):
    """With either test runner."""
    return int(re.search(r"(?:Ran )?(\d+) (?:tests|passed)", output)[1])


@pytest.mark.parametrize(("mode", "runner"), [("captured", "pytest"), ("eager", "django"), ("drain", "pytest")])
def test_a_suite_that_says_nothing_of_jobs(redis, mode, runner):
    pytest.importorskip("lupa")
    if runner == "pytest":
        arguments = [*pytest_arguments(), "shop/suite.py"]
    else:
        arguments = ["manage.py", "test", "--pattern", "suite.py"]
    assert count_of_passed(run(redis, *arguments, PROJECT_TEST=mode)) == 16


def test_a_suite_that_drains_without_fakeredis_says_what_to_install(tmp_path):
    (tmp_path / "fakeredis.py").write_text("raise ModuleNotFoundError")
    arguments = ["manage.py", "test", "--pattern", "suite.py"]
    paths = os.pathsep.join(map(str, [tmp_path, ROOT, PROJECT]))
    code, output = run_python(
        PROJECT, *arguments, PYTHONPATH=paths, PROJECT_TEST="drain", PROJECT_REDIS_URL=UNREACHABLE
    )
    assert code == 1
    assert 'install "fakeredis[lua]"' in output


def test_what_a_test_says_itself_holds(redis):
    pytest.importorskip("lupa")
    output = run(redis, *pytest_arguments(), "-k", "not Guard and not refused", PROJECT_TEST="drain")
    assert count_of_passed(output) > 15


def test_pytest_without_the_plugin_is_told(redis):
    arguments = [argument for argument in pytest_arguments() if PLUGIN not in argument]
    code, output = run_python(
        PROJECT, *arguments, "shop/suite.py", PROJECT_REDIS_URL=redis.proxy.url, PROJECT_TEST="captured"
    )
    assert code == 1
    assert "-p django_rtq.pytest_plugin" in output
