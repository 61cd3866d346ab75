"""current_job() and report_progress()."""

import json

import pytest

from django_rtq import JobContext, current_job, report_progress
from django_rtq.core.jobs.context import CurrentRun, current_run


@pytest.fixture
def said():
    """What is said by the job that runs here."""
    lines = []

    class Run:
        context = JobContext("a", _report=lambda line: lines.append(json.loads(line)))

    token = current_run.set(CurrentRun(Run()))
    yield lines
    current_run.reset(token)


def test_where_no_job_runs_there_is_none_and_nothing_is_told():
    assert current_job() is None
    report_progress(1, 2, "three")
    JobContext().progress(1)


def test_the_job_that_runs_here_is_known_and_tells_how_far_it_is(said):
    assert current_job().job_id == "a"
    current_job().progress(1)
    report_progress(0.5, 1.5, "pages")

    assert said == [{"done": 1, "total": None, "text": ""}, {"done": 0.5, "total": 1.5, "text": "pages"}]


def test_texts_are_cut_and_cleaned(said):
    report_progress(0, text="ü" * 300)
    report_progress(0, text="\ud800")

    assert [line["text"] for line in said] == ["ü" * 200, "?"]


@pytest.mark.parametrize("arguments", [("1",), (True,), (None,), (1, "2"), (1, True), (1, 2, None), (1, 2, b"")])
def test_what_is_of_no_such_type_is_refused(said, arguments):
    with pytest.raises(TypeError, match="has to be a"):
        report_progress(*arguments)
    assert said == []


@pytest.mark.parametrize("number", [-1, float("nan"), float("inf"), 10**400, -0.1])
def test_what_is_no_sensible_number_is_refused(said, number):
    for arguments in [(number,), (1, number)]:
        with pytest.raises(ValueError, match="has to be between 0 and"):
            report_progress(*arguments)
    assert said == []
