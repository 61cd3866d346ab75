"""The examples of the page about testing run as tests of a project."""

import re

import pytest

from tests.markdown import blocks, read
from tests.support.projects import MODELS, SETTINGS, pytest_arguments, run_python, write_project

pytestmark = pytest.mark.long

PAGE = blocks(read("docs/testing.md"))


def test_the_examples_pass(tmp_path):
    pytest.importorskip("fakeredis")
    examples = {name: code for name, code in PAGE if name != "settings.py"}
    write_project(tmp_path, {"shop_settings.py": SETTINGS, "shop/models.py": MODELS, **examples})
    _, output = run_python(tmp_path, *pytest_arguments())
    tests = sum(len(re.findall(r"def test_", code)) for _, code in PAGE)
    assert f"{tests} passed" in output, output


def test_every_example_names_its_file():
    assert all(name for name, _ in PAGE)
    assert len({name for name, _ in PAGE}) == len(PAGE)
