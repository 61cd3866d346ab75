"""The examples of the page about transactions run in a project."""

import os
import subprocess
import sys

import pytest

from django_rtq.conf import read_config
from tests.markdown import ROOT, blocks, cells, read, section
from tests.testing.test_page import MODELS, SETTINGS
from tests.testing.test_project import plugin_options

PAGE = blocks(read("docs/transactions.md"))
BILLING = """
DATABASES["billing"] = DATABASES["default"]
"""
TASKS = """
from django_rtq import task


@task
def charge(order_id): ...


@task
def send_receipt(order_id): ...
"""
MORE_TESTS = """
from django.db import transaction
from django.test import TransactionTestCase

from django_rtq.testing import captured
from shop import stock
from shop.orders import place_order


class MoreTests(TransactionTestCase):
    databases = {"default", "billing"}

    def test_a_transaction_commits(self):
        with captured() as jobs:
            place_order()
        assert [job.task for job in jobs] == ["shop.tasks.charge", "shop.tasks.send_receipt"]

    def test_the_option(self):
        with captured() as jobs:
            with transaction.atomic(), transaction.atomic("billing"):
                stock.attempt_failed(1)
                assert len(jobs) == 1
                stock.in_another_database(2)
                stock.update_stock.delay(3)
                assert len(jobs) == 1
            assert [job.args for job in jobs] == [[1], [2], [3]]
"""
FILES = ["shop/tests.py", "shop/more_tests.py"]


@pytest.fixture
def project(tmp_path):
    """A project with the files of the page, but for its settings."""
    (tmp_path / "shop").mkdir()
    files = {"shop_settings.py": SETTINGS + BILLING, "shop/__init__.py": "", "shop/models.py": MODELS}
    files |= {"shop/tasks.py": TASKS, "shop/more_tests.py": MORE_TESTS}
    files |= {name: code for name, code in PAGE if name != "settings.py"}
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    (tmp_path / "pytest.ini").write_text("[pytest]\nDJANGO_SETTINGS_MODULE = shop_settings\nfilterwarnings = error\n")
    return tmp_path


def test_the_examples_pass(project):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO"))}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(project)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin_options(), *FILES],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout


def test_the_settings_are_understood():
    given = {}
    for code in (code for name, code in PAGE if name == "settings.py"):
        exec(compile(code, "docs/transactions.md", "exec"), given)
        read_config(given["RTQ"], debug=False)


def test_every_value_of_the_setting_is_documented():
    assert list(cells(section(read("docs/transactions.md"), "## The setting: every call"))) == [
        "True",
        '"billing"',
        "False",
    ]
