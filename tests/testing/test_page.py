"""The examples of the page about testing run as tests of a project."""

import re

import pytest

from tests.markdown import blocks, read
from tests.support.projects import MODELS, SETTINGS, pytest_arguments, run_python, write_project

pytestmark = pytest.mark.long

PAGE = blocks(read("docs/testing.md"))


SHOP = ("shop/tasks.py", "shop/orders.py")
# What is for all tests of a project, and not for the other examples.
WHOLE_SUITE = ("mysite/settings.py", "mysite/runner.py", "conftest.py")
JOB_THAT_FAILS = """
from django.test import TestCase

from shop.tasks import charge


class OrderTests(TestCase):
    def test_a_failure_is_not_raised(self):
        self.assertNotEqual(charge.delay(404).state, "queued")
"""


def test_the_examples_pass(tmp_path):
    pytest.importorskip("fakeredis")
    examples = {name: code for name, code in PAGE if name not in ("settings.py", *WHOLE_SUITE)}
    write_project(tmp_path, {"shop_settings.py": SETTINGS, "shop/models.py": MODELS, **examples})
    _, output = run_python(tmp_path, *pytest_arguments())
    tests = sum(len(re.findall(r"def test_", code)) for _, code in PAGE)
    assert f"{tests} passed" in output, output


@pytest.mark.parametrize("runner", ["django", "pytest"])
def test_the_recipes_for_a_whole_suite(tmp_path, runner):
    examples = dict(PAGE)
    files = {name: examples[name] for name in SHOP} | {"shop/test_job_that_fails.py": JOB_THAT_FAILS}
    settings = SETTINGS
    if runner == "django":
        files["shop/runner.py"] = examples["mysite/runner.py"]
        settings += 'TEST_RUNNER = "shop.runner.EagerRunner"\n'
    else:
        files["conftest.py"] = examples["conftest.py"]
    write_project(tmp_path, {"shop_settings.py": settings, "shop/models.py": MODELS, **files})
    arguments = pytest_arguments() if runner == "pytest" else ["-m", "django", "test", "--settings", "shop_settings"]
    code, output = run_python(tmp_path, *arguments)
    assert (code, "1 passed" in output or "Ran 1 test" in output) == (0, True), output


def test_the_line_for_a_whole_suite_is_understood(tmp_path):
    examples = dict(PAGE)
    test = "from shop.tasks import remind\n\n\ndef test_it(db):\n    assert remind.delay(1).state == 'succeeded'\n"
    files = {name: examples[name] for name in SHOP} | {"shop/models.py": MODELS, "shop/test_it.py": test}
    write_project(tmp_path, {"shop_settings.py": SETTINGS + examples["mysite/settings.py"], **files})
    code, output = run_python(tmp_path, *pytest_arguments())
    assert code == 0, output


def test_every_example_names_its_file():
    assert all(name for name, _ in PAGE)
    assert len({name for name, _ in PAGE}) == len(PAGE)
