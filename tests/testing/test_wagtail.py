"""The sample site of Wagtail: its own tests, and some that enqueue, with one line in its settings."""

import re

import pytest

from tests.support.nightly import IS_NIGHTLY
from tests.support.projects import run_python

pytestmark = [pytest.mark.long, pytest.mark.skipif(not IS_NIGHTLY, reason="its migrations take most of a minute")]
pytest.importorskip("wagtail")

SETTINGS = """

INSTALLED_APPS += ["django_rtq"]
TASKS = {"default": {"BACKEND": "django_rtq.backend.RTQBackend"}}
"""
# Wagtail enqueues jobs when a page is saved: after the commit of its transaction.
OWN_TESTS = """
from django.conf import settings
from django.test import TestCase, TransactionTestCase, tag

from django_rtq import task
from django_rtq.testing import captured, drain
from home.models import HomePage
from wagtail.models import Page, ReferenceIndex, Revision

MODE = settings.RTQ["TEST"]


@task(unique=True)
def rename(title):
    HomePage.objects.update(title=title)


class PageTests(TestCase):
    def setUp(self):
        with self.captureOnCommitCallbacks(execute=True):
            self.page = Page.get_first_root_node().add_child(instance=HomePage(title="Bread"))

    def assert_renamed(self):
        job = rename.delay("Butter")
        assert not job.duplicate
        if MODE == "drain":
            drain()
        self.page.refresh_from_db()
        self.assertEqual(self.page.title, "Bread" if MODE == "captured" else "Butter")

    def test_one(self):
        self.assert_renamed()

    def test_another(self):
        self.assert_renamed()

    def test_the_jobs_of_wagtail(self):
        with captured() as jobs, self.captureOnCommitCallbacks(execute=True):
            self.page.save_revision().publish()
        self.assertTrue(any("index" in job.task for job in jobs), list(jobs))


class CommittedPageTests(TransactionTestCase):
    def test_it_is_published(self):
        root = Page.add_root(title="Root")
        page = root.add_child(instance=HomePage(title="Bread"))
        page.save_revision().publish()
        if MODE == "drain":
            assert {run.state for run in drain()} == {"succeeded"}
        self.assertEqual(Revision.objects.count(), 1)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """What `wagtail start` makes, and tests of our own."""
    folder = tmp_path_factory.mktemp("wagtail")
    code, output = run_python(folder, "-m", "wagtail.bin.wagtail", "start", "mysite", ".")
    assert code == 0, output
    (folder / "home/test_jobs.py").write_text(OWN_TESTS)
    with (folder / "mysite/settings/base.py").open("a") as settings:
        settings.write(SETTINGS)
    return folder


def run_tests(site, *options, line=""):
    with (site / "mysite/settings/base.py").open("a") as settings:
        settings.write(line)
    return run_python(site, "manage.py", "test", *options)


@pytest.mark.parametrize(("mode", "options"), [("eager", []), ("captured", ["--parallel", "2"]), ("drain", [])])
def test_the_suite_of_a_site_needs_one_line(site, mode, options):
    pytest.importorskip("lupa")
    line = f'RTQ = {{"REDIS": "redis://localhost:6379/0", "TEST": "{mode}"}}\n'
    code, output = run_tests(site, *options, line=line)
    own = (site / "home/tests.py").read_text()
    tests = len(re.findall(r"def test_", own + OWN_TESTS))
    assert (code, f"Ran {tests} tests" in output) == (0, True), output
