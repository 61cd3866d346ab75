"""The examples of the page about middleware run as tests of a project."""

import re

import pytest

from tests.markdown import blocks, read
from tests.support.projects import SETTINGS, pytest_arguments, run_python, write_project

pytestmark = pytest.mark.long

PAGE = blocks(read("docs/middleware.md"))


def test_the_examples_pass(tmp_path):
    files = {"settings.py": SETTINGS, "conftest.py": "import shop.receivers\n"}
    for name, code in PAGE:
        files[name] = files.get(name, "") + code
    files["settings.py"] = files["settings.py"].replace("redis://localhost:6379/0", "redis://localhost:1/0")
    write_project(tmp_path, files, settings="settings")
    _, output = run_python(tmp_path, *pytest_arguments())
    tests = sum(len(re.findall(r"def test_", code)) for _, code in PAGE)
    assert f"{tests} passed" in output, output
