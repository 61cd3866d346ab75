"""Log lines have the fields of the job that wrote them."""

import ast
import logging
import re

import pytest

from django_rtq import JobContext
from django_rtq.core.jobs.context import CurrentRun, current_run
from django_rtq.monitoring import JobLogFilter, add_job_fields
from tests.app import context_tasks
from tests.markdown import ROOT
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.long

FIELDS = {"job_id": "j1", "task": "shop.tasks.mail", "queue": "mail", "client": "acme", "attempt": 2}


@pytest.fixture
def job():
    """A job runs here."""

    class Run:
        context = JobContext(job_id="j1", attempt=2, queue_name="mail", client="acme", task_name="shop.tasks.mail")

    token = current_run.set(CurrentRun(Run()))
    yield
    current_run.reset(token)


def filtered(given=(), **options):
    """What a record has after the filter, of the fields and of what it was given."""
    record = logging.makeLogRecord(dict(given))
    assert JobLogFilter(**options).filter(record) is True
    return {name: vars(record)[name] for name in {*FIELDS, *dict(given)}}


@pytest.mark.usefixtures("job")
def test_a_line_of_a_job_has_its_fields():
    assert filtered() == FIELDS
    assert add_job_fields(None, "info", {"event": "x"}) == {"event": "x", **FIELDS}


@pytest.mark.usefixtures("job")
def test_fields_that_a_line_has_are_kept():
    assert filtered({"client": "mine"}) == {**FIELDS, "client": "mine"}
    assert add_job_fields(None, "info", {"client": "mine"}) == {**FIELDS, "client": "mine"}


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize("given", [{"job_id": "j2", "queue": "bulk"}, {"job_ids": ["j2", "j3"], "queue": "bulk"}])
def test_a_line_about_other_jobs_gets_nothing_of_the_one_that_wrote_it(given):
    assert filtered(given, default=None) == {**dict.fromkeys(FIELDS), **given}
    assert add_job_fields(None, "info", dict(given)) == given


def test_outside_a_job_the_fields_are_the_default():
    assert filtered() == dict.fromkeys(FIELDS, "-")
    assert filtered(default=None) == dict.fromkeys(FIELDS)
    assert add_job_fields(None, "info", {"event": "x"}) == {"event": "x"}


@pytest.mark.parametrize("slots", [1, 4])
def test_each_job_of_a_worker_has_its_own_fields(rtq_worker, slots):
    each = [context_tasks.log_fields, context_tasks.alog_fields]
    calls = [task.using(client=f"client-{number}") for number in range(6) for task in each]
    jobs = [task.delay(str(number)) for number, task in enumerate(calls)]

    rtq_worker("--concurrency", slots, TASK_MODULES=["tasks", "context_tasks"])

    for task, job in zip(calls, jobs, strict=True):
        assert job.get(PATIENCE) == [[job.id, task.name, "default", job.refresh().client, 1]] * 2
    assert len({job.refresh().client for job in jobs}) == 6


def log_calls():
    """All calls of a logger in the package: where, the text of the call, and the names of its keywords."""
    for path in sorted((ROOT / "django_rtq").rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and re.match(r"logger\.(?:log|[a-z]+)$", ast.unparse(node.func)):
                yield f"{path.name}:{node.lineno}", ast.unparse(node), {keyword.arg for keyword in node.keywords}


def test_each_of_our_lines_that_names_a_job_says_so_in_extra():
    found = [(where, keywords) for where, text, keywords in log_calls() if re.search(r"\bjob_ids?\b|\bjob %s", text)]
    assert len(found) >= 12
    assert [where for where, keywords in found if "extra" not in keywords] == []
