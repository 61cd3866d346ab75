"""The examples of the page about transactions run in a project."""

import pytest

from django_rtq.core.conf.config import read_config
from tests.markdown import blocks, cells, read, section
from tests.support.projects import MODELS, SETTINGS, pytest_arguments, run_python, write_project

pytestmark = pytest.mark.long

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


def test_the_examples_pass(tmp_path):
    examples = {name: code for name, code in PAGE if name != "settings.py"}
    files = {"shop_settings.py": SETTINGS + BILLING, "shop/models.py": MODELS}
    write_project(tmp_path, {**files, "shop/tasks.py": TASKS, "shop/more_tests.py": MORE_TESTS, **examples})
    _, output = run_python(tmp_path, *pytest_arguments(), *FILES)
    assert "3 passed" in output, output


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
