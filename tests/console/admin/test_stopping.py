"""Jobs that run are stopped by hand."""

import pytest

from tests.console.admin.conftest import body, logged, text
from tests.console.admin.test_dead_letters import said
from tests.support.jobs import QUEUE, asked_job, claimed_job

PAGE = "/admin/django_rtq/job/"


@pytest.fixture
def running(broker):
    """A job that is claimed by a worker."""
    return claimed_job(broker, "running", body=body("bakery", 1))


def test_a_job_that_runs_is_asked_to_stop_and_the_person_told_so(running, operator, readers):
    operator.post(f"{PAGE}{running.id}/cancel/", {"queue": QUEUE})
    assert "was asked to stop. It is cancelled when it stops" in said(operator)
    assert "Asked to stop." in logged()[0]
    found = readers.find(running.id)
    assert (found.state, found.is_stopping) == ("running", True)
    assert "When it stops, it is cancelled" in text(operator.get(f"{PAGE}{running.id}/cancel/?queue={QUEUE}"))


@pytest.mark.parametrize("where", ["", "{id}/"])
def test_a_job_that_was_asked_is_shown_as_such_and_not_asked_again(where, broker, operator):
    job = asked_job(broker, "asked")
    html = text(operator.get(PAGE + where.format(id=job.id)))
    assert "asked to stop" in html
    assert "Cancel job …" not in html
    assert "Terminate …" in html
