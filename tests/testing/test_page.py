"""The examples of the page about testing run as tests of a project."""

import os
import re
import subprocess
import sys

import pytest

from tests.markdown import ROOT, blocks, read
from tests.testing.test_project import plugin_options

SETTINGS = """
SECRET_KEY = "for a test"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django_rtq", "shop"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""
MODELS = """
from django.db import models


class Order(models.Model):
    is_charged = models.BooleanField(default=False)
    is_reminded = models.BooleanField(default=False)
"""
PAGE = blocks(read("docs/testing.md"))


@pytest.fixture
def project(tmp_path):
    """A project with the files of the page, but for its settings."""
    (tmp_path / "shop").mkdir()
    files = {"shop_settings.py": SETTINGS, "shop/__init__.py": "", "shop/models.py": MODELS}
    files |= {name: code for name, code in PAGE if name != "settings.py"}
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    (tmp_path / "pytest.ini").write_text("[pytest]\nDJANGO_SETTINGS_MODULE = shop_settings\nfilterwarnings = error\n")
    return tmp_path


def test_the_examples_pass(project):
    pytest.importorskip("fakeredis")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO"))}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(project)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin_options()],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    tests = sum(len(re.findall(r"def test_", code)) for _, code in PAGE)
    assert f"{tests} passed" in done.stdout, done.stdout


def test_every_example_names_its_file():
    assert all(name for name, _ in PAGE)
    assert len({name for name, _ in PAGE}) == len(PAGE)
